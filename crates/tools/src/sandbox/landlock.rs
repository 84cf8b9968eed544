//! Which files a command can reach: Landlock, which only knows what is allowed.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};

use super::inner::Isolation;
use super::spec::SandboxSpec;

/// The newest form that is asked for; an older kernel gives what it has.
const NEWEST_ABI: ABI = ABI::V7;

/// Programs and libraries; of `/etc` only what the spec names.
const SYSTEM_PATHS: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/proc",
    "/sys",
];
/// Only with a network: where names are looked up.
const RESOLVER_PATHS: [&str; 2] = ["/run/systemd/resolve", "/run/resolvconf"];
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];
const SHM_PATH: &str = "/dev/shm";

/// What was put on.
pub struct LandlockResult {
    pub confined_by: Vec<String>,
    /// The kernel's version of Landlock.
    pub abi: i32,
}

/// From here on nothing else can be reached, by this process or any that it starts.
pub fn confine(spec: &SandboxSpec, own: Isolation) -> Result<LandlockResult, String> {
    let failed = |error: &dyn std::fmt::Display| format!("Landlock: {error}");
    let read = AccessFs::from_read(NEWEST_ABI);
    let all = AccessFs::from_all(NEWEST_ABI);
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    ruleset = ruleset.handle_access(all).map_err(|error| failed(&error))?;
    ruleset = ruleset
        .scope(Scope::from_all(NEWEST_ABI))
        .map_err(|error| failed(&error))?;
    // In a network of its own a command may talk to itself.
    if !spec.network && !own.network {
        ruleset = ruleset
            .handle_access(AccessNet::from_all(NEWEST_ABI))
            .map_err(|error| failed(&error))?;
    }
    let mut rules = ruleset.create().map_err(|error| failed(&error))?;
    let system = SYSTEM_PATHS
        .iter()
        .map(PathBuf::from)
        .chain(spec.public.iter().cloned());
    let resolver = RESOLVER_PATHS
        .iter()
        .filter(|_| spec.network)
        .map(PathBuf::from);
    for path in system.chain(resolver) {
        rules = allow(rules, &path, read)?;
    }
    for path in visible_parts(&spec.read, spec, own.mounts) {
        rules = allow_no_follow(rules, &path, read)?;
    }
    for device in DEVICES {
        let writing = AccessFs::WriteFile | AccessFs::ReadFile | AccessFs::Truncate;
        rules = allow(rules, Path::new(device), writing)?;
    }
    // Elsewhere it is shared with the whole machine.
    if own.mounts {
        rules = allow(rules, Path::new(SHM_PATH), all)?;
    }
    for path in visible_parts(&spec.write, spec, own.mounts) {
        rules = allow_no_follow(rules, &path, all)?;
    }
    let status = rules.restrict_self().map_err(|error| failed(&error))?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err("this kernel has no Landlock, or it is switched off".to_owned());
    }
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as i32,
        _ => 1,
    };
    Ok(LandlockResult {
        confined_by: vec![format!("files (Landlock {abi})")],
        abi,
    })
}

/// What is not there needs no rule; what cannot be opened cannot be reached anyway.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, String> {
    let Ok(opened) = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else {
        return Ok(rules);
    };
    add_rule(rules, opened, access)
}

/// The same for a name that must not be a link: whoever made it does not say where it leads.
fn allow_no_follow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, String> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = open(path, flags, Mode::empty()) else {
        return Ok(rules);
    };
    let is_link = fstat(&opened)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink);
    if is_link {
        Ok(rules)
    } else {
        add_rule(rules, opened, access)
    }
}

fn add_rule(
    rules: RulesetCreated,
    opened: OwnedFd,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, String> {
    let found = fstat(&opened).map_err(|error| error.to_string())?;
    let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    let access = if is_folder {
        access
    } else {
        access & AccessFs::from_file(NEWEST_ABI)
    };
    rules
        .add_rule(PathBeneath::new(opened, access))
        .map_err(|error| format!("Landlock: {error}"))
}

/// The folders, without those that are hidden. With mounts of its own nothing shows there anyway; else everything beside
/// the way to them is named one by one, and new names cannot be made in the folders on that way.
fn visible_parts(folders: &[PathBuf], spec: &SandboxSpec, has_mounts: bool) -> Vec<PathBuf> {
    if has_mounts {
        return folders.to_vec();
    }
    let is_named = |folder: &Path| spec.hidden.iter().any(|hidden| folder.starts_with(hidden));
    let parts = |folder: &PathBuf| match is_named(folder) {
        // Inside a hidden folder, but named on purpose: a skill of the user's.
        true => vec![folder.clone()],
        false => without_hidden(folder, &spec.hidden),
    };
    folders.iter().flat_map(parts).collect()
}

fn without_hidden(folder: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|hidden| folder.starts_with(hidden)) {
        return Vec::new();
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(folder)) {
        return vec![folder.to_path_buf()];
    }
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .flat_map(|entry| without_hidden(&entry.path(), hidden))
        .collect()
}
