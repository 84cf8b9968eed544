//! Ways out of the sandbox. Each must fail, with namespaces and without them.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::num::NonZeroU64;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use lango_tools::shell::{SandboxChoice, Shell};

use crate::harness::{SECRET, ShellHarness, command_request, context, is_running, wait_for_exit};

const SANDBOXED_MODES: [SandboxChoice; 2] = [SandboxChoice::On, SandboxChoice::NoNamespaces];

/// A word that no other test uses.
fn marker(name: &str, choice: SandboxChoice) -> String {
    format!("lango-test-{name}-{choice:?}-{}", std::process::id())
}

#[tokio::test]
async fn nothing_outside_can_be_written() {
    for choice in SANDBOXED_MODES {
        let world = ShellHarness::new(choice);
        let outside = world.at("outside");
        let (out, home) = (outside.display(), world.at("home"));
        for line in [
            format!("echo x > {out}/new"),
            format!("echo x > {out}/secret"),
            format!("echo x >> {out}/secret"),
            format!(": > {out}/secret"),
            format!("truncate -s 0 {out}/secret"),
            format!("mkdir {out}/folder"),
            format!("rm {out}/secret"),
            format!("mv {out}/secret ."),
            format!("echo x > f && mv f {out}/new"),
            format!("echo x > f && ln f {out}/new"),
            format!("ln -s /x {out}/new"),
            format!("ln -s {out} link && echo x > link/new"),
            "cd .. && echo x > outside/new".to_owned(),
            format!("echo x > {}/.bashrc", home.display()),
            "echo x > /etc/lango-was-here".to_owned(),
            "echo x > /tmp/lango-was-here".to_owned(),
        ] {
            let told = world.run(&line).await;
            assert!(
                !told.starts_with("exit code 0"),
                "{choice:?} {line}: {told}"
            );
        }
        assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), SECRET);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert!(!world.at("home/.bashrc").exists());
    }
}

#[tokio::test]
async fn secrets_cannot_be_read() {
    for choice in SANDBOXED_MODES {
        let world = ShellHarness::new(choice);
        symlink(world.at("outside"), world.at("work/link")).unwrap();
        for line in [
            "cat ~/.ssh/id_rsa".to_owned(),
            format!("cat {}", world.at("data/lango.sqlite").display()),
            format!("cp {} . ; cat secret", world.at("outside/secret").display()),
            "cat link/secret".to_owned(),
            "cat ../outside/secret".to_owned(),
            "cat /proc/self/cwd/../outside/secret; cd /proc/self/root && cat .$OLDPWD/../data/lango.sqlite"
                .to_owned(),
            "ln ../outside/secret hard; cat hard".to_owned(),
            "tar cf - ../data ../home | strings".to_owned(),
            "env; set; cat /proc/self/environ".to_owned(),
            format!("cat /etc/shadow /etc/gshadow /etc/sudoers && echo {SECRET}"),
        ] {
            let told = world.run(&line).await;
            assert!(!told.contains(SECRET), "{choice:?} {line}: {told}");
        }
    }
}

/// Lango's own data stays out of reach where it lies in the workspace, and the rest of the workspace can be used.
#[tokio::test]
async fn own_data_inside_the_workspace_is_hidden() {
    for choice in SANDBOXED_MODES {
        let world = ShellHarness::new(choice);
        fs::create_dir(world.at("project")).unwrap();
        let shell = Shell::new(world.parts("."));
        let told = world
            .run_in(&shell, "echo fine > work/new && cat work/new", ".")
            .await
            .unwrap();
        assert!(told.contains("fine"), "{told}");
        let told = world
            .run_in(
                &shell,
                "cat data/* data/.*; echo x > data/new; ls data",
                ".",
            )
            .await;
        assert!(
            !format!("{told:?}").contains(SECRET),
            "{choice:?}: {told:?}"
        );
        assert!(!world.at("data/new").exists());
        assert_eq!(
            fs::read_to_string(world.at("data/lango.sqlite")).unwrap(),
            SECRET
        );
    }
}

/// Nor can it be moved aside, or reached by a link that lies beside it.
#[tokio::test]
async fn own_data_cannot_be_replaced_or_reached_by_a_detour() {
    for choice in SANDBOXED_MODES {
        let world = ShellHarness::new(choice);
        fs::create_dir_all(world.at("deep/way")).unwrap();
        fs::rename(world.at("data"), world.at("deep/way/data")).unwrap();
        symlink(world.at("deep/way/data"), world.at("detour")).unwrap();
        let away = tempfile::tempdir().unwrap();
        fs::write(away.path().join("secret"), SECRET).unwrap();
        symlink(away.path(), world.at("out")).unwrap();
        let mut parts = world.parts(".");
        parts.hidden = vec![world.at("deep/way/data")];
        let shell = Shell::new(parts);
        for line in [
            "mv deep deeper && cat deeper/way/data/*",
            "mv deep/way deep/away && cat deep/away/data/*",
            "mv deep/way/data deep/way/date && cat deep/way/date/*",
            "cat detour/lango.sqlite; echo x > detour/new",
            &format!(
                "cat {0}/secret; cat out/secret; echo x > {0}/new",
                away.path().display()
            ),
        ] {
            let told = format!("{:?}", world.run_in(&shell, line, ".").await);
            assert!(!told.contains(SECRET), "{choice:?} {line}: {told}");
        }
        assert!(
            world.at("deep/way/data/lango.sqlite").exists()
                && !world.at("deep/way/data/new").exists()
        );
        assert!(!away.path().join("new").exists());
    }
}

#[tokio::test]
async fn the_environment_of_other_processes_cannot_be_read() {
    for choice in SANDBOXED_MODES {
        let world = ShellHarness::new(choice);
        let told = world
            .run("cat /proc/[0-9]*/environ | tr '\\0' '\\n'; cat /proc/[0-9]*/maps | head -3")
            .await;
        assert!(!told.contains("CARGO_MANIFEST_DIR"), "{choice:?}: {told}");
        let own = std::process::id();
        let told = world
            .run(&format!(
                "cat /proc/{own}/environ /proc/{own}/mem; ls /proc/{own}/fd /proc/{own}/cwd/"
            ))
            .await;
        assert!(
            told.contains("exit code") && !told.contains("Cargo.toml"),
            "{choice:?}: {told}"
        );
    }
}

#[tokio::test]
async fn no_socket_leads_outside() {
    for choice in SANDBOXED_MODES {
        let world = ShellHarness::new(choice);
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let unix = UnixListener::bind(world.at("work/socket")).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        unix.set_nonblocking(true).unwrap();
        let (tcp_port, udp_port) = (
            tcp.local_addr().unwrap().port(),
            udp.local_addr().unwrap().port(),
        );
        let connect = "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) and connect(S, sockaddr_un(\"socket\")) and print \"in\"";
        for line in [
            format!("echo x > /dev/tcp/127.0.0.1/{tcp_port} && echo in"),
            format!("echo x > /dev/udp/127.0.0.1/{udp_port}"),
            format!("perl -e '{connect}'"),
        ] {
            let told = world.run(&line).await;
            assert!(!told.contains("\nin"), "{choice:?} {line}: {told}");
        }
        let blocked = |kind: ErrorKind| kind == ErrorKind::WouldBlock;
        assert!(
            blocked(tcp.accept().unwrap_err().kind()),
            "{choice:?}: TCP got out"
        );
        assert!(
            blocked(udp.recv(&mut [0; 8]).unwrap_err().kind()),
            "{choice:?}: UDP got out"
        );
        assert!(
            blocked(unix.accept().unwrap_err().kind()),
            "{choice:?}: a UNIX socket got out"
        );
    }
}

/// What a system call gives, and the number of the error.
fn syscall(number: i64, arguments: &str) -> String {
    format!(
        "perl -e 'my $b = \"\\0\" x 256; my $r = syscall({number}, {arguments}); print \"r=$r e=\", $!+0'"
    )
}

#[tokio::test]
async fn dangerous_system_calls_are_refused() {
    let own = std::process::id();
    for choice in SANDBOXED_MODES {
        let world = ShellHarness::new(choice);
        for (name, line) in [
            ("io_uring", syscall(libc::SYS_io_uring_setup, "8, $b")),
            (
                "ptrace",
                syscall(libc::SYS_ptrace, &format!("16, {own}, 0, 0")),
            ),
            (
                "process_vm_readv",
                syscall(
                    libc::SYS_process_vm_readv,
                    &format!("{own}, $b, 1, $b, 1, 0"),
                ),
            ),
            (
                "unshare",
                syscall(libc::SYS_unshare, &libc::CLONE_NEWUSER.to_string()),
            ),
            ("mount", syscall(libc::SYS_mount, "$b, $b, $b, 0, 0")),
            ("bpf", syscall(libc::SYS_bpf, "0, $b, 8")),
            ("keyctl", syscall(libc::SYS_keyctl, "0, 0, 0")),
            (
                "prlimit",
                syscall(libc::SYS_prlimit64, &format!("{own}, 0, $b, 0")),
            ),
            ("vsock", syscall(libc::SYS_socket, "40, 1, 0")),
            ("packet", syscall(libc::SYS_socket, "17, 3, 0")),
        ] {
            let told = world.run(&line).await;
            assert!(
                told.contains(&format!("r=-1 e={}", libc::EPERM)),
                "{choice:?} {name}: {told}"
            );
        }
        #[cfg(target_arch = "x86_64")]
        {
            let told = world
                .run(&syscall(libc::SYS_ptrace + 0x4000_0000, "16, 1, 0, 0"))
                .await;
            assert!(
                told.contains(&format!("r=-1 e={}", libc::ENOSYS)),
                "{choice:?} x32: {told}"
            );
        }
    }
}

#[tokio::test]
async fn a_command_has_no_privileges() {
    for choice in SANDBOXED_MODES {
        let world = ShellHarness::new(choice);
        let told = world
            .run("grep -E 'NoNewPrivs|Cap(Eff|Prm|Bnd|Amb|Inh)' /proc/self/status; id -u; ls /proc/self/fd")
            .await;
        assert!(told.contains("NoNewPrivs:\t1"), "{told}");
        for set in ["CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh"] {
            assert!(
                told.contains(&format!("{set}:\t0000000000000000")),
                "{choice:?} {set}: {told}"
            );
        }
        if choice == SandboxChoice::On
            && told.contains("exit code 0")
            && has_namespaces(&world).await
        {
            assert!(!told.contains("\n0\n0\n"), "root inside: {told}");
        }
        assert!(!told.contains("\n4\n"), "inherited descriptors: {told}");
    }
}

async fn has_namespaces(world: &ShellHarness) -> bool {
    let confined = lango_tools::shell::probe_confinement(&world.parts("work"))
        .await
        .unwrap();
    confined.iter().any(|word| word == "user namespace")
}

#[tokio::test]
async fn everything_ends_with_its_call() {
    for choice in SANDBOXED_MODES {
        let world = ShellHarness::new(choice);
        let mark = marker("survivor", choice);
        for line in [
            format!("setsid sh -c 'sleep 300; : {mark}' & exit 0"),
            format!(
                "(setsid setsid sh -c 'sleep 300; : {mark}' </dev/null >/dev/null 2>&1 &) ; true"
            ),
            format!(
                "nohup sh -c 'trap \"\" TERM HUP INT; sleep 300; : {mark}' >/dev/null 2>&1 & disown; true"
            ),
            format!(
                "perl -e 'if (fork == 0) {{ use POSIX; setsid; if (fork == 0) {{ $0 = \"{mark}\"; sleep 300 }} }} '"
            ),
            format!("perl -e '$0 = \"{mark}\"; if (fork == 0) {{ while (1) {{ exit if fork }} }}'"),
            format!(
                "perl -e '$0 = \"{mark}\"; if (fork == 0) {{ while (1) {{ my $p = fork; exit if $p; setpgrp }} }}' & exit 0"
            ),
            format!("kill -9 $PPID; setsid sh -c 'sleep 300; : {mark}' & exit 0"),
            format!(
                "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); setsid sh -c 'sleep 300; : {mark}' & exit 0"
            ),
        ] {
            world.run(&line).await;
            assert!(wait_for_exit(&mark).await, "{choice:?} {line}");
        }
    }
}

#[tokio::test]
async fn everything_ends_at_the_time_limit_and_when_nobody_waits_any_more() {
    for choice in SANDBOXED_MODES {
        let world = ShellHarness::new(choice);
        let mark = marker("time", choice);
        let line = format!("setsid sh -c 'sleep 300; : {mark}' & sleep 300");
        let late = lango_tools::shell::CommandRequest {
            timeout: Some(Duration::from_millis(300)),
            ..command_request(&line, world.at("work"))
        };
        let told = world.shell().run(&context(), late).await.unwrap_err();
        assert!(told.0.starts_with("stopped: it had not ended"), "{told}");
        assert!(wait_for_exit(&mark).await, "{choice:?}: outlived its time");
        let (shell, caller) = (world.shell(), context());
        let dropped = shell.run(&caller, command_request(&line, world.at("work")));
        let started = async {
            while !is_running(&mark) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = dropped => unreachable!("it sleeps"),
            () = started => {}
        }
        assert!(wait_for_exit(&mark).await, "{choice:?}: outlived its call");
    }
}

/// A command that starts many short ones is no bomb: what ended is forgotten at once.
#[tokio::test]
async fn many_short_processes_are_no_bomb() {
    for choice in SANDBOXED_MODES {
        let mut world = ShellHarness::new(choice);
        world.settings.processes = NonZeroU64::new(100).unwrap();
        let told = world
            .run("for i in $(seq 400); do (true &); done; wait; echo finished")
            .await;
        assert!(
            told.starts_with("exit code 0") && told.contains("finished"),
            "{choice:?}: {told}"
        );
    }
}

#[tokio::test]
async fn what_belongs_to_the_whole_machine_stays_closed() {
    for choice in SANDBOXED_MODES {
        let world = ShellHarness::new(choice);
        let shared = format!("/dev/shm/lango-test-{}-{choice:?}", std::process::id());
        fs::write(&shared, SECRET).unwrap();
        let told = world
            .run(&format!("cat {shared}; echo x >> {shared}; echo done"))
            .await;
        assert!(!told.contains(SECRET), "{choice:?}: {told}");
        assert_eq!(fs::read_to_string(&shared).unwrap(), SECRET);
        fs::remove_file(&shared).unwrap();
    }
}

#[tokio::test]
async fn a_fork_bomb_is_ended() {
    for choice in SANDBOXED_MODES {
        let mut world = ShellHarness::new(choice);
        world.settings.processes = NonZeroU64::new(60).unwrap();
        let mark = marker("bomb", choice);
        let began = Instant::now();
        let line =
            format!("b() {{ : {mark}; b | b & }}; b; for i in $(seq 600); do sleep 0.1; done");
        let late = lango_tools::shell::CommandRequest {
            timeout: Some(Duration::from_secs(2)),
            ..command_request(&line, world.at("work"))
        };
        let told = world.shell().run(&context(), late).await;
        assert!(
            told.is_err() && began.elapsed() < Duration::from_secs(20),
            "{choice:?}: {told:?}"
        );
        assert!(wait_for_exit(&mark).await, "{choice:?}");
    }
}

#[tokio::test]
async fn memory_and_disk_cannot_be_used_up() {
    for choice in SANDBOXED_MODES {
        let mut world = ShellHarness::new(choice);
        world.settings.memory_mb = NonZeroU64::new(128).unwrap();
        world.settings.file_mb = NonZeroU64::new(8).unwrap();
        world.settings.disk_mb = NonZeroU64::new(48).unwrap();
        let told = world
            .run("perl -e '$x = \"a\" x (400 << 20); print \"got it\"'")
            .await;
        assert!(!told.contains("got it"), "{choice:?}: {told}");
        let many =
            "for i in 1 2 3 4 5 6; do perl -e '$x = \"a\" x (60 << 20); sleep 3' & done; wait";
        let told = world.run(many).await;
        assert!(
            told.contains("Killed") || told.contains("more memory"),
            "{choice:?}: {told}"
        );
        let told = world
            .run("head -c 100000000 /dev/zero > big; stat -c 'size %s' big")
            .await;
        assert!(told.contains("size 8388608"), "{choice:?}: {told}");
        let told = world
            .run("for i in $(seq 300); do head -c 4000000 /dev/zero > part$i; sleep 0.05; done; echo got it")
            .await;
        assert!(
            told.contains("of the disk") && !told.contains("got it"),
            "{choice:?}: {told}"
        );
    }
}
