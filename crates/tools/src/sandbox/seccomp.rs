//! Which system calls a command can make: everything but what reaches other processes, the kernel's own business, new
//! namespaces, and sockets that lead outside.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::inner::Isolation;
use super::spec::SandboxSpec;

/// Other processes, the kernel, mounts, namespaces, keys, clocks, and the second door for everything, io_uring.
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

/// Shared memory, semaphores and queues, where they are those of the whole machine.
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

/// Typing into a terminal on behalf of its user.
const TERMINAL_IOCTLS: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// Since this version Landlock also guards truncating.
const TRUNCATE_ABI: i32 = 3;

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// From here on those calls fail, in this process and in any that it starts.
pub fn install_filters(spec: &SandboxSpec, own: Isolation, landlock: i32) -> Result<(), String> {
    let mut forbidden: SyscallRules = DENIED_SYSCALLS
        .into_iter()
        .map(|call| (call, Vec::new()))
        .collect();
    forbidden.insert(
        libc::SYS_clone,
        any_of(0, NAMESPACE_FLAGS.map(|flag| flag_set(flag as u64)))?,
    );
    forbidden.insert(
        libc::SYS_ioctl,
        any_of(1, TERMINAL_IOCTLS.map(ArgTest::equal))?,
    );
    forbidden.insert(libc::SYS_socket, socket_rules(spec.network || own.network)?);
    // Limits of its own only: with those of others it could end them, or blind the helper.
    let of_others = ArgTest {
        op: SeccompCmpOp::Ne,
        value: 0,
    };
    forbidden.insert(libc::SYS_prlimit64, any_of(0, [of_others])?);
    if !own.ipc {
        forbidden.extend(IPC_SYSCALLS.map(|call| (call, Vec::new())));
    }
    // Flags behind a pointer cannot be judged; programs fall back to the older calls.
    let mut unknown: SyscallRules = [(libc::SYS_clone3, Vec::new())].into();
    // Memory that no limit of a single process counts.
    if !own.memory {
        unknown.insert(libc::SYS_memfd_create, Vec::new());
        unknown.insert(libc::SYS_memfd_secret, Vec::new());
    }
    if landlock < TRUNCATE_ABI {
        let truncating = ArgTest::masked_equal(
            (libc::O_TRUNC | libc::O_ACCMODE) as u64,
            (libc::O_TRUNC | libc::O_RDONLY) as u64,
        );
        forbidden.insert(libc::SYS_truncate, Vec::new());
        forbidden.insert(libc::SYS_openat, any_of(2, [truncating.clone()])?);
        #[cfg(target_arch = "x86_64")]
        forbidden.insert(libc::SYS_open, any_of(1, [truncating])?);
        unknown.insert(libc::SYS_openat2, Vec::new());
    }
    install(forbidden, libc::EPERM)?;
    install(unknown, libc::ENOSYS)
}

/// With this on, a process starts no other; threads of its own it may have.
pub fn no_fork_filters() -> Result<[BpfProgram; 2], String> {
    let is_process = ArgTest::masked_equal(libc::CLONE_THREAD as u64, 0);
    let mut rules: SyscallRules = [(libc::SYS_clone, any_of(0, [is_process])?)].into();
    #[cfg(target_arch = "x86_64")]
    rules.extend([(libc::SYS_fork, Vec::new()), (libc::SYS_vfork, Vec::new())]);
    // Flags behind a pointer cannot be judged; threads are then made with the older call.
    let unknown: SyscallRules = [(libc::SYS_clone3, Vec::new())].into();
    Ok([
        build_program(rules, libc::EPERM)?,
        build_program(unknown, libc::ENOSYS)?,
    ])
}

/// Internet sockets where they lead nowhere else, or may; never those of the machine's own services.
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

/// What an argument is compared with, and how.
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

/// The call is meant when its argument fits one of these.
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

/// On x86-64 every call has a second number (x32) that the rules do not know.
fn deny_x32() -> Vec<sock_filter> {
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    const X32: u32 = 0x4000_0000;
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
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
            k: refuse,
        },
    ]
}
