//! Named profiles: cookies that outlive a session, because the user asked for it.
//!
//! A session keeps its own isolated context. Cookies are put into it when it starts, and its changes are
//! written back after each step, so that sessions that use a profile at the same time add to each other.

mod session_profile;

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lango_domain::event::Principal;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use session_profile::SessionProfile;

const MAX_NAME_BYTES: usize = 63;
/// Most bytes of stored cookies.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
const COOKIES: &str = "cookies.json";
/// The fields of a cookie that are needed to set it again.
const FIELDS: [&str; 11] = [
    "name",
    "value",
    "domain",
    "path",
    "secure",
    "httpOnly",
    "sameSite",
    "priority",
    "sourceScheme",
    "sourcePort",
    "partitionKey",
];

/// The name of a profile: a letter or digit, then letters, digits, `_` and `-`, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileName(String);

impl ProfileName {
    pub fn parse(name: &str) -> Result<Self, String> {
        let is_first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_next = |c: char| is_first(c) || matches!(c, '_' | '-');
        if name.len() <= MAX_NAME_BYTES && name.starts_with(is_first) && name.chars().all(is_next) {
            return Ok(Self(name.to_owned()));
        }
        let shown: String = name.chars().take(MAX_NAME_BYTES).collect();
        Err(format!(
            "`{shown}` is no name of a profile: it begins with a letter or digit, goes on with letters, digits, `_` \
             or `-`, in lower case, and has at most {MAX_NAME_BYTES} characters"
        ))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A cookie as the protocol describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cookie(Value);

impl Cookie {
    /// Returns the cookie with the fields that are needed to set it again.
    pub fn from_browser(cookie: &Value) -> Self {
        let mut kept = serde_json::Map::new();
        for field in FIELDS {
            if let Some(value) = cookie.get(field) {
                kept.insert(field.to_owned(), value.clone());
            }
        }
        if cookie["session"] != true {
            kept.insert("expires".to_owned(), cookie["expires"].clone());
        }
        Self(Value::Object(kept))
    }

    pub fn to_browser(&self) -> &Value {
        &self.0
    }

    fn is_same_place(&self, other: &Self) -> bool {
        let place = ["name", "domain", "path", "partitionKey"];
        place.iter().all(|field| self.0[field] == other.0[field])
    }

    fn domain(&self) -> &str {
        self.0["domain"].as_str().unwrap_or_default()
    }
}

/// A profile on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredProfile {
    pub name: String,
    pub cookies: usize,
    pub sites: Vec<String>,
}

/// The folder of all profiles.
#[derive(Clone, Debug)]
pub struct ProfileStore {
    folder: PathBuf,
}

impl ProfileStore {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the profiles of a principal, by name.
    pub fn list(&self, principal: &Principal) -> io::Result<Vec<StoredProfile>> {
        let entries = match std::fs::read_dir(self.principal_folder(principal)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut profiles = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Ok(name) = ProfileName::parse(&name) else {
                continue;
            };
            let cookies = self.load(principal, &name)?;
            let mut sites: Vec<String> = cookies
                .iter()
                .map(|cookie| cookie.domain().trim_start_matches('.').to_owned())
                .collect();
            sites.sort();
            sites.dedup();
            profiles.push(StoredProfile {
                name: name.0,
                cookies: cookies.len(),
                sites,
            });
        }
        profiles.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(profiles)
    }

    /// Removes a profile. Returns false if there is none.
    pub fn remove(&self, principal: &Principal, name: &ProfileName) -> io::Result<bool> {
        match std::fs::remove_dir_all(self.profile_folder(principal, name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    /// Reads the cookies of a profile; none if it is new.
    pub fn load(&self, principal: &Principal, name: &ProfileName) -> io::Result<Vec<Cookie>> {
        let path = self.profile_folder(principal, name).join(COOKIES);
        let bytes = match lango_files::read_bounded(&path, MAX_FILE_BYTES) {
            Err(lango_files::ReadError::Missing) => return Ok(Vec::new()),
            bytes => {
                bytes.map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?
            }
        };
        serde_json::from_slice(&bytes)
            .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
    }

    /// Adds the changes of a session: the difference between the cookies that it knew and those that it
    /// has now.
    pub fn add_changes(
        &self,
        principal: &Principal,
        name: &ProfileName,
        (before, now): (&[Cookie], &[Cookie]),
    ) -> io::Result<()> {
        let folder = self.profile_folder(principal, name);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        let _lock = lock(&folder)?;
        let stored = self.load(principal, name)?;
        let merged = merge(stored, before, now);
        write_private(&folder, &serde_json::to_vec(&merged)?)
    }

    fn principal_folder(&self, principal: &Principal) -> PathBuf {
        self.folder.join(escape(&principal.to_string()))
    }

    fn profile_folder(&self, principal: &Principal, name: &ProfileName) -> PathBuf {
        self.principal_folder(principal).join(&name.0)
    }
}

/// Applies the changes of one session to the stored cookies, which another session may have changed.
fn merge(mut stored: Vec<Cookie>, before: &[Cookie], now: &[Cookie]) -> Vec<Cookie> {
    let is_in = |cookies: &[Cookie], cookie: &Cookie| {
        cookies.iter().any(|other| other.is_same_place(cookie))
    };
    let is_removed = |cookie: &Cookie| is_in(before, cookie) && !is_in(now, cookie);
    let changed: Vec<&Cookie> = now
        .iter()
        .filter(|cookie| !before.contains(cookie))
        .collect();
    let is_replaced = |cookie: &Cookie| changed.iter().any(|new| new.is_same_place(cookie));
    stored.retain(|cookie| !is_removed(cookie) && !is_replaced(cookie));
    stored.extend(changed.into_iter().cloned());
    stored
}

/// Returns a name that is one part of a path, different for different texts.
fn escape(text: &str) -> String {
    let mut name = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            byte => name += &format!("%{byte:02x}"),
        }
    }
    name
}

/// Locks a profile against other processes until the result is dropped.
fn lock(folder: &Path) -> io::Result<std::fs::File> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join("lock"))?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn write_private(folder: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = folder.join("cookies.draft");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&draft, folder.join(COOKIES))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    fn cookie(name: &str, value: &str) -> Cookie {
        Cookie::from_browser(&json!({
            "name": name, "value": value, "domain": ".a.example", "path": "/", "session": true, "size": 3,
        }))
    }

    fn name(name: &str) -> ProfileName {
        ProfileName::parse(name).unwrap()
    }

    #[test]
    fn names_are_one_plain_word() {
        for good in ["work", "a-b_c", "2"] {
            assert!(ProfileName::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "..",
            "a/b",
            "A",
            "-x",
            ".x",
            "a b",
            "a\0",
            &"a".repeat(64),
        ] {
            let error = ProfileName::parse(bad).unwrap_err();
            assert!(error.contains("is no name of a profile"), "{error}");
        }
    }

    #[test]
    fn sessions_add_to_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let store = ProfileStore::new(folder.path().join("profiles"));
        let (ann, work) = (Principal::local(), name("work"));
        assert_eq!(store.load(&ann, &work).unwrap(), []);
        let start = [cookie("a", "1"), cookie("b", "1")];
        store.add_changes(&ann, &work, (&[], &start)).unwrap();
        // One session changes `a`, another one removes `b` and adds `c`.
        let one = [cookie("a", "2"), cookie("b", "1")];
        store.add_changes(&ann, &work, (&start, &one)).unwrap();
        let other = [cookie("a", "1"), cookie("c", "1")];
        store.add_changes(&ann, &work, (&start, &other)).unwrap();
        let stored = store.load(&ann, &work).unwrap();
        assert_eq!(stored, [cookie("a", "2"), cookie("c", "1")]);
        let listed = store.list(&ann).unwrap();
        assert_eq!(
            (listed[0].cookies, listed[0].sites.as_slice()),
            (2, &["a.example".to_owned()][..])
        );
        assert!(store.remove(&ann, &work).unwrap() && !store.remove(&ann, &work).unwrap());
        assert_eq!(store.list(&ann).unwrap(), []);
    }

    #[test]
    fn profiles_are_private_to_a_principal_and_to_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let store = ProfileStore::new(folder.path().join("profiles"));
        let (one, other) = (Principal::new("../x"), Principal::new("..%2fx"));
        store
            .add_changes(&one, &name("p"), (&[], &[cookie("a", "1")]))
            .unwrap();
        assert_eq!(store.list(&other).unwrap(), []);
        assert_eq!(store.list(&one).unwrap().len(), 1);
        let path = store.profile_folder(&one, &name("p"));
        assert!(path.starts_with(folder.path().join("profiles")), "{path:?}");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join(COOKIES))), (0o700, 0o600));
        std::fs::write(path.join(COOKIES), "{broken").unwrap();
        let error = store.load(&one, &name("p")).unwrap_err().to_string();
        assert!(error.contains("cookies.json"), "{error}");
    }
}
