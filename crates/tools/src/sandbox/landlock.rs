//! Restricts file access with Landlock, which only supports allow rules.

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

/// The newest requested version; older kernels enforce what they support.
const NEWEST_ABI: ABI = ABI::V7;

/// Programs and libraries. The allowed parts of `/etc` are in the spec.
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
/// Paths for name resolution, allowed only with network access.
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

/// The enforced restrictions.
pub struct LandlockResult {
    pub confined_by: Vec<String>,
    /// The kernel's version of Landlock.
    pub abi: i32,
}

/// Restricts this process and all of its descendants to the paths of the spec.
pub fn confine(spec: &SandboxSpec, isolation: Isolation) -> Result<LandlockResult, String> {
    let failed = |error: &dyn std::fmt::Display| format!("Landlock: {error}");
    let read = AccessFs::from_read(NEWEST_ABI);
    let all = AccessFs::from_all(NEWEST_ABI);
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    ruleset = ruleset.handle_access(all).map_err(|error| failed(&error))?;
    ruleset = ruleset
        .scope(Scope::from_all(NEWEST_ABI))
        .map_err(|error| failed(&error))?;
    // In a separate network namespace, a command may connect to itself.
    if !spec.network && !isolation.network {
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
    for path in visible_parts(&spec.read, spec, isolation.mounts) {
        rules = allow_no_follow(rules, &path, read)?;
    }
    for device in DEVICES {
        let read_write = AccessFs::WriteFile | AccessFs::ReadFile | AccessFs::Truncate;
        rules = allow(rules, Path::new(device), read_write)?;
    }
    // Without a separate mount, shared memory belongs to the whole machine.
    if isolation.mounts {
        rules = allow(rules, Path::new(SHM_PATH), all)?;
    }
    for path in visible_parts(&spec.write, spec, isolation.mounts) {
        rules = allow_no_follow(rules, &path, all)?;
    }
    let status = rules.restrict_self().map_err(|error| failed(&error))?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err("this kernel has no Landlock, or it is disabled".to_owned());
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

/// Adds a rule for a path. Skips missing and inaccessible paths.
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

/// Like [`allow`], but skips links, because an untrusted link must not choose the target.
fn allow_no_follow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, String> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = open(path, flags, Mode::empty()) else {
        return Ok(rules);
    };
    let is_link =
        fstat(&opened).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
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
    let stat = fstat(&opened).map_err(|error| error.to_string())?;
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let access = if is_folder {
        access
    } else {
        access & AccessFs::from_file(NEWEST_ABI)
    };
    rules
        .add_rule(PathBeneath::new(opened, access))
        .map_err(|error| format!("Landlock: {error}"))
}

/// Returns the folders without hidden ones. With separate mounts, hidden folders are covered
/// already. Otherwise the siblings on the path to a hidden folder are listed one by one, and no new
/// names can be created in its parents.
fn visible_parts(folders: &[PathBuf], spec: &SandboxSpec, has_mounts: bool) -> Vec<PathBuf> {
    if has_mounts {
        return folders.to_vec();
    }
    let is_inside_hidden =
        |folder: &Path| spec.hidden.iter().any(|hidden| folder.starts_with(hidden));
    let parts = |folder: &PathBuf| match is_inside_hidden(folder) {
        // Inside a hidden folder, but allowed explicitly, such as a skill of the user.
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
