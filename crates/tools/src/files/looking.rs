//! What looking at a path means for rules.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use lango_domain::pattern::{Star, fits};
use lango_domain::{Intent, Safety, ToolFailure};
use rustix::fs::{FileType, OFlags};

use super::beneath;
use super::text::shown;
use super::workspace::Workspace;

impl Workspace {
    /// What a look at this path would be, for rules: where it really lies.
    pub(super) fn look(&self, path: &str) -> Result<Intent, ToolFailure> {
        let relative = self.relative(path)?;
        let subject = match self.resolve(&relative, OFlags::PATH | OFlags::CLOEXEC) {
            Ok(opened) => {
                let real = shown(&self.real(path, &opened)?);
                let is_folder =
                    rustix::fs::fstat(&opened).is_ok_and(|stat| beneath::kind(&stat) == FileType::Directory);
                if is_folder { format!("{real}/") } else { real }
            }
            // A link that leads nowhere can still be looked at itself.
            Err(error) => match self.named(path) {
                Ok(named) => shown(&named.relative),
                Err(_) => return Err(self.explain(path, &relative, error)),
            },
        };
        Ok(Intent { level: Safety::Safe, shows: format!("look at {subject}"), subject, pattern: None })
    }

    /// The real path of a file or folder inside, and how rules know it.
    pub fn place_of(&self, path: &str) -> Result<(PathBuf, String), ToolFailure> {
        let subject = self.look(path)?.subject;
        let real = self.relative(subject.trim_end_matches('/')).unwrap_or_default();
        Ok((self.root().join(real), subject))
    }

    /// A file at a real path, unless rules close it or it lies outside by now.
    pub fn open_file(&self, path: &Path) -> io::Result<File> {
        let refused = |why: ToolFailure| io::Error::new(ErrorKind::PermissionDenied, why.0);
        let opened = self.file(&shown(path)).map_err(refused)?;
        if self.is_closed(&opened.relative) {
            return Err(refused(ToolFailure("a rule denies it".to_owned())));
        }
        Ok(opened.file)
    }

    /// Whether lists and searches leave this out.
    pub(super) fn is_closed(&self, relative: &Path) -> bool {
        let path = shown(relative);
        let fits = |pattern: &String, path: &str| fits(pattern, path, Star::Anything);
        self.closed().iter().any(|pattern| fits(pattern, &path) || fits(pattern, &format!("{path}/")))
    }
}
