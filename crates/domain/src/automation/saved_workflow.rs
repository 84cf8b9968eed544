//! Workflows that are stored under a name, with their earlier versions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::Principal;
use crate::session::StoreFuture;

/// A version of a stored workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedWorkflow {
    pub principal: Principal,
    pub name: String,
    /// Counted from 1. Grows with every change of the definition.
    pub version: u64,
    /// The file as text.
    pub definition: String,
    pub saved: Timestamp,
}

/// A workflow to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSavedWorkflow {
    pub principal: Principal,
    pub name: String,
    pub definition: String,
    pub saved: Timestamp,
    /// Most versions that are kept. Older ones are deleted.
    pub max_versions: usize,
}

/// Stores workflows under names.
pub trait WorkflowStore: Send + Sync {
    /// Stores a new version, or returns the newest one if it has the same definition.
    fn save_workflow(&self, workflow: NewSavedWorkflow) -> StoreFuture<'_, SavedWorkflow>;

    /// Returns a version of a workflow, or the newest one.
    fn saved_workflow<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a str,
        version: Option<u64>,
    ) -> StoreFuture<'a, Option<SavedWorkflow>>;

    /// Returns the newest version of each of a principal's workflows, ordered by name.
    fn saved_workflows<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> StoreFuture<'a, Vec<SavedWorkflow>>;

    /// Deletes a workflow with all versions. Runs keep their copy. Returns false if there is none.
    fn delete_workflow<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a str,
    ) -> StoreFuture<'a, bool>;
}
