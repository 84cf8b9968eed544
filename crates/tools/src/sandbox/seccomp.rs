//! Restricts system calls with seccomp. Denies access to other processes, kernel administration,
//! new namespaces, and sockets to the outside.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::inner::Isolation;
use super::spec::SandboxSpec;

/// Calls for other processes, the kernel, mounts, namespaces, keys, clocks, and io_uring, which
/// would bypass the filter.
const DENIED_SYSCALLS: [i64; 49] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_quotactl,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
];

/// Shared memory, semaphores and queues, denied without an IPC namespace.
const IPC_SYSCALLS: [i64; 13] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

const NAMESPACE_FLAGS: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Calls that inject input into a terminal.
const TERMINAL_IOCTLS: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// The first version of Landlock that restricts truncation.
const TRUNCATE_ABI: i32 = 3;

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// Installs the filters in this process and all of its descendants. Denied calls fail with an
/// error.
pub fn install_filters(
    spec: &SandboxSpec,
    isolation: Isolation,
    landlock_abi: i32,
) -> Result<(), String> {
    let mut denied: SyscallRules = DENIED_SYSCALLS
        .into_iter()
        .map(|call| (call, Vec::new()))
        .collect();
    denied.insert(
        libc::SYS_clone,
        any_of(0, NAMESPACE_FLAGS.map(|flag| flag_set(flag as u64)))?,
    );
    denied.insert(
        libc::SYS_ioctl,
        any_of(1, TERMINAL_IOCTLS.map(ArgTest::equal))?,
    );
    denied.insert(
        libc::SYS_socket,
        socket_rules(spec.network || isolation.network)?,
    );
    // A command may set only its own limits: those of other processes could kill them or stop the
    // helper.
    let other_process = ArgTest {
        op: SeccompCmpOp::Ne,
        value: 0,
    };
    denied.insert(libc::SYS_prlimit64, any_of(0, [other_process])?);
    if !isolation.ipc {
        denied.extend(IPC_SYSCALLS.map(|call| (call, Vec::new())));
    }
    // A filter cannot check flags behind a pointer; with ENOSYS, programs fall back to the older
    // calls.
    let mut unsupported: SyscallRules = [(libc::SYS_clone3, Vec::new())].into();
    // The limits of a process do not count this memory.
    if !isolation.memory {
        unsupported.insert(libc::SYS_memfd_create, Vec::new());
        unsupported.insert(libc::SYS_memfd_secret, Vec::new());
    }
    if landlock_abi < TRUNCATE_ABI {
        let truncates = ArgTest::masked_equal(
            (libc::O_TRUNC | libc::O_ACCMODE) as u64,
            (libc::O_TRUNC | libc::O_RDONLY) as u64,
        );
        denied.insert(libc::SYS_truncate, Vec::new());
        denied.insert(libc::SYS_openat, any_of(2, [truncates.clone()])?);
        #[cfg(target_arch = "x86_64")]
        denied.insert(libc::SYS_open, any_of(1, [truncates])?);
        unsupported.insert(libc::SYS_openat2, Vec::new());
    }
    install(denied, libc::EPERM)?;
    install(unsupported, libc::ENOSYS)
}

/// Returns filters that keep a process from starting others. It may still create threads.
pub fn no_fork_filters() -> Result<[BpfProgram; 2], String> {
    let is_process = ArgTest::masked_equal(libc::CLONE_THREAD as u64, 0);
    let mut rules: SyscallRules = [(libc::SYS_clone, any_of(0, [is_process])?)].into();
    #[cfg(target_arch = "x86_64")]
    rules.extend([(libc::SYS_fork, Vec::new()), (libc::SYS_vfork, Vec::new())]);
    // A filter cannot check flags behind a pointer; with ENOSYS, threads are created with the older
    // call.
    let unsupported: SyscallRules = [(libc::SYS_clone3, Vec::new())].into();
    Ok([
        build_program(rules, libc::EPERM)?,
        build_program(unsupported, libc::ENOSYS)?,
    ])
}

/// Denies all sockets, or all except internet and netlink sockets. Unix sockets of local services
/// are always denied.
fn socket_rules(internet: bool) -> Result<Vec<SeccompRule>, String> {
    if !internet {
        return Ok(Vec::new());
    }
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let others = families.map(|family| {
        condition(
            0,
            ArgTest {
                op: SeccompCmpOp::Ne,
                value: family as u64,
            },
        )
    });
    let others = others.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(vec![
        SeccompRule::new(others).map_err(|error| error.to_string())?,
    ])
}

/// A comparison of an argument.
#[derive(Clone)]
struct ArgTest {
    op: SeccompCmpOp,
    value: u64,
}

impl ArgTest {
    fn equal(value: u64) -> Self {
        Self {
            op: SeccompCmpOp::Eq,
            value,
        }
    }

    fn masked_equal(mask: u64, value: u64) -> Self {
        Self {
            op: SeccompCmpOp::MaskedEq(mask),
            value,
        }
    }
}

fn flag_set(flag: u64) -> ArgTest {
    ArgTest::masked_equal(flag, flag)
}

/// Returns rules that match if the argument satisfies any of the tests.
fn any_of<const N: usize>(argument: u8, values: [ArgTest; N]) -> Result<Vec<SeccompRule>, String> {
    let rule = |value| {
        SeccompRule::new(vec![condition(argument, value)?]).map_err(|error| error.to_string())
    };
    values.into_iter().map(rule).collect()
}

fn condition(argument: u8, value: ArgTest) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, value.op, value.value)
        .map_err(|error| error.to_string())
}

fn install(rules: SyscallRules, error: i32) -> Result<(), String> {
    apply_filter(&build_program(rules, error)?).map_err(|error| format!("seccomp: {error}"))
}

fn build_program(rules: SyscallRules, error: i32) -> Result<BpfProgram, String> {
    let failed = |error: &dyn std::fmt::Display| format!("seccomp: {error}");
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| failed(&error))?;
    let errno = SeccompAction::Errno(error as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, errno, arch)
        .map_err(|error| failed(&error))?;
    let program: BpfProgram = filter
        .try_into()
        .map_err(|error: seccompiler::BackendError| failed(&error))?;
    Ok(deny_x32().into_iter().chain(program).collect())
}

/// Denies the x32 numbers, which every call has on x86-64 in addition and which the rules do not
/// cover.
fn deny_x32() -> Vec<sock_filter> {
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    const X32: u32 = 0x4000_0000;
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let deny = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    vec![
        sock_filter {
            code: LOAD_NUMBER,
            jt: 0,
            jf: 0,
            k: 0,
        },
        sock_filter {
            code: AT_LEAST,
            jt: 0,
            jf: 1,
            k: X32,
        },
        sock_filter {
            code: RETURN,
            jt: 0,
            jf: 0,
            k: deny,
        },
    ]
}
