//! The effect of a call, before it runs.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::arguments::parse_args;
use super::{Safety, Tool, ToolContext, ToolError};

/// The effect that a call would have, for the approval decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    pub level: Safety,
    /// The exact effect: the command, the diff, the amount.
    pub shows: String,
    /// The text that rules are matched against: the command or the path.
    pub subject: String,
    /// The pattern that an approval for the session may cover, such as `git *`.
    pub pattern: Option<String>,
}

/// Returns the intent of a call before it runs.
pub type IntentFunction =
    Arc<dyn Fn(ToolContext, Value) -> BoxFuture<'static, Result<Intent, ToolError>> + Send + Sync>;

/// Gives up what the intent of a call has reserved.
pub(super) type ReleaseFunction =
    Arc<dyn Fn(ToolContext, Value) -> BoxFuture<'static, ()> + Send + Sync>;

impl Tool {
    /// Sets the function that describes the intent of a call. A call whose intent fails does not run.
    #[must_use]
    pub fn with_intent<Args, Describe, Fut>(mut self, describe: Describe) -> Self
    where
        Args: DeserializeOwned,
        Describe: Fn(ToolContext, Args) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Intent, ToolError>> + Send + 'static,
    {
        let describe = Arc::new(describe);
        self.intent = Some(Arc::new(move |context, args| {
            let describe = Arc::clone(&describe);
            Box::pin(async move {
                let args = parse_args(args)?;
                describe(context, args).await
            })
        }));
        self
    }

    /// Sets the function that gives up what the intent of a call has reserved. It runs if the call is not
    /// approved.
    #[must_use]
    pub fn with_release<Args, Release, Fut>(mut self, release: Release) -> Self
    where
        Args: DeserializeOwned + Send,
        Release: Fn(ToolContext, Args) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let release = Arc::new(release);
        self.release = Some(Arc::new(move |context, args| {
            let release = Arc::clone(&release);
            Box::pin(async move {
                if let Ok(args) = parse_args(args) {
                    release(context, args).await;
                }
            })
        }));
        self
    }

    /// Gives up what the intent of a call has reserved, because the call will not run.
    pub async fn release(&self, context: ToolContext, args: Value) {
        if let Some(release) = &self.release {
            release(context, args).await;
        }
    }

    /// Removes the function that gives up reservations, for a tool whose intent is replaced.
    #[must_use]
    pub fn without_release(mut self) -> Self {
        self.release = None;
        self
    }

    /// Returns true if the level depends on the call.
    pub fn has_intent(&self) -> bool {
        self.intent.is_some()
    }

    /// Returns the intent of a call. By default, it shows the arguments.
    pub fn intent(
        &self,
        context: ToolContext,
        args: Value,
    ) -> BoxFuture<'static, Result<Intent, ToolError>> {
        if let Some(intent) = &self.intent {
            return intent(context, args);
        }
        let (subject, shows) = (args.to_string(), format!("{} {args:#}", self.name));
        let intent = Intent {
            level: self.safety,
            shows,
            subject,
            pattern: None,
        };
        Box::pin(std::future::ready(Ok(intent)))
    }

    /// Wraps the intent function, if there is one.
    #[must_use]
    pub fn wrap_intent(
        mut self,
        wrap: impl FnOnce(&str, IntentFunction) -> IntentFunction,
    ) -> Self {
        self.intent = self.intent.map(|intent| wrap(&self.name, intent));
        self
    }
}
