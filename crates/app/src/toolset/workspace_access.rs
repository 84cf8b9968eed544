//! The workspace, as documents are read from it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use lango_documents::DocumentAccess;
use lango_domain::ToolError;
use lango_engine::{ApprovalPolicy, Verdict};
use lango_tools::files::Workspace;

/// Access to the workspace with the limits of the file tools.
pub(super) struct WorkspaceAccess {
    pub workspace: Workspace,
    /// The reason why there is no workspace.
    pub disabled_reason: Option<String>,
    pub approval: ApprovalPolicy,
}

impl DocumentAccess for WorkspaceAccess {
    fn resolve(&self, path: &str) -> Result<(PathBuf, String), ToolError> {
        match &self.disabled_reason {
            Some(reason) => Err(ToolError(reason.clone())),
            None => self.workspace.resolve_for_rules(path),
        }
    }

    /// Opens a file of the workspace. Files that need approval are skipped, since a folder may
    /// contain many.
    fn open(&self, path: &Path) -> io::Result<File> {
        let (file, subject) = self.workspace.open_file(path)?;
        let refused = |reason: &str| Err(io::Error::new(ErrorKind::PermissionDenied, reason));
        match self.approval.for_read(&subject) {
            Verdict::Auto => Ok(file),
            Verdict::Ask => refused("reading it needs approval"),
            Verdict::Deny => refused("a rule denies reading it"),
        }
    }
}
