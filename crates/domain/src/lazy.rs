//! A resource that is opened on first use, so that a team that never uses it opens nothing.

use std::sync::Arc;

use crate::StoreError;
use tokio::sync::OnceCell;

type OpenFn<T, E> = dyn Fn() -> Result<Arc<T>, E> + Send + Sync;

/// A lazily opened resource. Cheap to clone; all clones share the opened resource.
pub struct Lazy<T: ?Sized, E = StoreError> {
    open: Arc<OpenFn<T, E>>,
    opened: Arc<OnceCell<Arc<T>>>,
}

impl<T: ?Sized, E> Lazy<T, E> {
    pub fn new(open: impl Fn() -> Result<Arc<T>, E> + Send + Sync + 'static) -> Self {
        Self {
            open: Arc::new(open),
            opened: Arc::default(),
        }
    }

    /// Wraps a resource that is already open.
    pub fn ready(opened: Arc<T>) -> Self
    where
        T: Send + Sync + 'static,
    {
        Self::new(move || Ok(Arc::clone(&opened)))
    }

    pub async fn get(&self) -> Result<&Arc<T>, E> {
        self.opened
            .get_or_try_init(|| async { (self.open)() })
            .await
    }
}

impl<T: ?Sized, E> Clone for Lazy<T, E> {
    fn clone(&self) -> Self {
        Self {
            open: Arc::clone(&self.open),
            opened: Arc::clone(&self.opened),
        }
    }
}
