//! Attempts to escape from the sandbox. Each must fail, with and without namespaces.

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

/// Returns a text that no other test uses.
fn marker(name: &str, choice: SandboxChoice) -> String {
    format!("lango-test-{name}-{choice:?}-{}", std::process::id())
}

#[tokio::test]
async fn cannot_write_outside() {
    for choice in SANDBOXED_MODES {
        let harness = ShellHarness::new(choice);
        let outside = harness.at("outside");
        let (out, home) = (outside.display(), harness.at("home"));
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
            let output = harness.run(&line).await;
            assert!(
                !output.starts_with("exit code 0"),
                "{choice:?} {line}: {output}"
            );
        }
        assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), SECRET);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert!(!harness.at("home/.bashrc").exists());
    }
}

#[tokio::test]
async fn cannot_read_secrets() {
    for choice in SANDBOXED_MODES {
        let harness = ShellHarness::new(choice);
        symlink(harness.at("outside"), harness.at("work/link")).unwrap();
        for line in [
            "cat ~/.ssh/id_rsa".to_owned(),
            format!("cat {}", harness.at("data/lango.sqlite").display()),
            format!("cp {} . ; cat secret", harness.at("outside/secret").display()),
            "cat link/secret".to_owned(),
            "cat ../outside/secret".to_owned(),
            "cat /proc/self/cwd/../outside/secret; cd /proc/self/root && cat .$OLDPWD/../data/lango.sqlite"
                .to_owned(),
            "ln ../outside/secret hard; cat hard".to_owned(),
            "tar cf - ../data ../home | strings".to_owned(),
            "env; set; cat /proc/self/environ".to_owned(),
            format!("cat /etc/shadow /etc/gshadow /etc/sudoers && echo {SECRET}"),
        ] {
            let output = harness.run(&line).await;
            assert!(!output.contains(SECRET), "{choice:?} {line}: {output}");
        }
    }
}

/// Lango's data in the workspace is inaccessible; the rest of the workspace can be used.
#[tokio::test]
async fn hides_own_data_inside_the_workspace() {
    for choice in SANDBOXED_MODES {
        let harness = ShellHarness::new(choice);
        fs::create_dir(harness.at("project")).unwrap();
        let shell = Shell::new(harness.parts("."));
        let output = harness
            .run_in(&shell, "echo fine > work/new && cat work/new", ".")
            .await
            .unwrap();
        assert!(output.contains("fine"), "{output}");
        let output = harness
            .run_in(
                &shell,
                "cat data/* data/.*; echo x > data/new; ls data",
                ".",
            )
            .await;
        assert!(
            !format!("{output:?}").contains(SECRET),
            "{choice:?}: {output:?}"
        );
        assert!(!harness.at("data/new").exists());
        assert_eq!(
            fs::read_to_string(harness.at("data/lango.sqlite")).unwrap(),
            SECRET
        );
    }
}

/// Lango's data can neither be moved away nor reached through a link.
#[tokio::test]
async fn cannot_replace_own_data_or_reach_it_through_links() {
    for choice in SANDBOXED_MODES {
        let harness = ShellHarness::new(choice);
        fs::create_dir_all(harness.at("deep/way")).unwrap();
        fs::rename(harness.at("data"), harness.at("deep/way/data")).unwrap();
        symlink(harness.at("deep/way/data"), harness.at("detour")).unwrap();
        let away = tempfile::tempdir().unwrap();
        fs::write(away.path().join("secret"), SECRET).unwrap();
        symlink(away.path(), harness.at("out")).unwrap();
        let mut parts = harness.parts(".");
        parts.hidden = vec![harness.at("deep/way/data")];
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
            let output = format!("{:?}", harness.run_in(&shell, line, ".").await);
            assert!(!output.contains(SECRET), "{choice:?} {line}: {output}");
        }
        assert!(
            harness.at("deep/way/data/lango.sqlite").exists()
                && !harness.at("deep/way/data/new").exists()
        );
        assert!(!away.path().join("new").exists());
    }
}

#[tokio::test]
async fn cannot_read_environment_of_other_processes() {
    for choice in SANDBOXED_MODES {
        let harness = ShellHarness::new(choice);
        let output = harness
            .run("cat /proc/[0-9]*/environ | tr '\\0' '\\n'; cat /proc/[0-9]*/maps | head -3")
            .await;
        assert!(
            !output.contains("CARGO_MANIFEST_DIR"),
            "{choice:?}: {output}"
        );
        let own = std::process::id();
        let output = harness
            .run(&format!(
                "cat /proc/{own}/environ /proc/{own}/mem; ls /proc/{own}/fd /proc/{own}/cwd/"
            ))
            .await;
        assert!(
            output.contains("exit code") && !output.contains("Cargo.toml"),
            "{choice:?}: {output}"
        );
    }
}

#[tokio::test]
async fn cannot_connect_sockets_to_the_outside() {
    for choice in SANDBOXED_MODES {
        let harness = ShellHarness::new(choice);
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let unix = UnixListener::bind(harness.at("work/socket")).unwrap();
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
            let output = harness.run(&line).await;
            assert!(!output.contains("\nin"), "{choice:?} {line}: {output}");
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

/// Returns a command that makes a system call and prints its result and error number.
fn syscall(number: i64, arguments: &str) -> String {
    format!(
        "perl -e 'my $b = \"\\0\" x 256; my $r = syscall({number}, {arguments}); print \"r=$r e=\", $!+0'"
    )
}

#[tokio::test]
async fn denies_dangerous_system_calls() {
    let own = std::process::id();
    for choice in SANDBOXED_MODES {
        let harness = ShellHarness::new(choice);
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
            let output = harness.run(&line).await;
            assert!(
                output.contains(&format!("r=-1 e={}", libc::EPERM)),
                "{choice:?} {name}: {output}"
            );
        }
        #[cfg(target_arch = "x86_64")]
        {
            let output = harness
                .run(&syscall(libc::SYS_ptrace + 0x4000_0000, "16, 1, 0, 0"))
                .await;
            assert!(
                output.contains(&format!("r=-1 e={}", libc::ENOSYS)),
                "{choice:?} x32: {output}"
            );
        }
    }
}

#[tokio::test]
async fn commands_have_no_privileges() {
    for choice in SANDBOXED_MODES {
        let harness = ShellHarness::new(choice);
        let output = harness
            .run("grep -E 'NoNewPrivs|Cap(Eff|Prm|Bnd|Amb|Inh)' /proc/self/status; id -u; ls /proc/self/fd")
            .await;
        assert!(output.contains("NoNewPrivs:\t1"), "{output}");
        for set in ["CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh"] {
            assert!(
                output.contains(&format!("{set}:\t0000000000000000")),
                "{choice:?} {set}: {output}"
            );
        }
        if choice == SandboxChoice::On
            && output.contains("exit code 0")
            && has_namespaces(&harness).await
        {
            assert!(!output.contains("\n0\n0\n"), "root inside: {output}");
        }
        assert!(!output.contains("\n4\n"), "inherited descriptors: {output}");
    }
}

async fn has_namespaces(harness: &ShellHarness) -> bool {
    let confined = lango_tools::shell::probe_confinement(&harness.parts("work"))
        .await
        .unwrap();
    confined
        .iter()
        .any(|mechanism| mechanism == "user namespace")
}

#[tokio::test]
async fn kills_all_descendants_when_a_command_ends() {
    for choice in SANDBOXED_MODES {
        let harness = ShellHarness::new(choice);
        let marker = marker("survivor", choice);
        for line in [
            format!("setsid sh -c 'sleep 300; : {marker}' & exit 0"),
            format!(
                "(setsid setsid sh -c 'sleep 300; : {marker}' </dev/null >/dev/null 2>&1 &) ; true"
            ),
            format!(
                "nohup sh -c 'trap \"\" TERM HUP INT; sleep 300; : {marker}' >/dev/null 2>&1 & disown; true"
            ),
            format!(
                "perl -e 'if (fork == 0) {{ use POSIX; setsid; if (fork == 0) {{ $0 = \"{marker}\"; sleep 300 }} }} '"
            ),
            format!(
                "perl -e '$0 = \"{marker}\"; if (fork == 0) {{ while (1) {{ exit if fork }} }}'"
            ),
            format!(
                "perl -e '$0 = \"{marker}\"; if (fork == 0) {{ while (1) {{ my $p = fork; exit if $p; setpgrp }} }}' & exit 0"
            ),
            format!("kill -9 $PPID; setsid sh -c 'sleep 300; : {marker}' & exit 0"),
            format!(
                "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); setsid sh -c 'sleep 300; : {marker}' & exit 0"
            ),
        ] {
            harness.run(&line).await;
            assert!(wait_for_exit(&marker).await, "{choice:?} {line}");
        }
    }
}

#[tokio::test]
async fn kills_all_descendants_on_timeout_and_cancellation() {
    for choice in SANDBOXED_MODES {
        let harness = ShellHarness::new(choice);
        let marker = marker("time", choice);
        let line = format!("setsid sh -c 'sleep 300; : {marker}' & sleep 300");
        let late = lango_tools::shell::CommandRequest {
            timeout: Some(Duration::from_millis(300)),
            ..command_request(&line, harness.at("work"))
        };
        let output = harness.shell().run(&context(), late).await.unwrap_err();
        assert!(output.0.starts_with("stopped: it timed out"), "{output}");
        assert!(
            wait_for_exit(&marker).await,
            "{choice:?}: outlived its time"
        );
        let (shell, caller) = (harness.shell(), context());
        let dropped = shell.run(&caller, command_request(&line, harness.at("work")));
        let started = async {
            while !is_running(&marker) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = dropped => unreachable!("it sleeps"),
            () = started => {}
        }
        assert!(
            wait_for_exit(&marker).await,
            "{choice:?}: outlived its call"
        );
    }
}

/// Ended processes are reaped immediately and do not count against the limit.
#[tokio::test]
async fn allows_many_short_processes() {
    for choice in SANDBOXED_MODES {
        let mut harness = ShellHarness::new(choice);
        harness.settings.processes = NonZeroU64::new(100).unwrap();
        let output = harness
            .run("for i in $(seq 400); do (true &); done; wait; echo finished")
            .await;
        assert!(
            output.starts_with("exit code 0") && output.contains("finished"),
            "{choice:?}: {output}"
        );
    }
}

#[tokio::test]
async fn cannot_access_shared_memory_of_the_machine() {
    for choice in SANDBOXED_MODES {
        let harness = ShellHarness::new(choice);
        let shared = format!("/dev/shm/lango-test-{}-{choice:?}", std::process::id());
        fs::write(&shared, SECRET).unwrap();
        let output = harness
            .run(&format!("cat {shared}; echo x >> {shared}; echo done"))
            .await;
        assert!(!output.contains(SECRET), "{choice:?}: {output}");
        assert_eq!(fs::read_to_string(&shared).unwrap(), SECRET);
        fs::remove_file(&shared).unwrap();
    }
}

#[tokio::test]
async fn kills_fork_bombs() {
    for choice in SANDBOXED_MODES {
        let mut harness = ShellHarness::new(choice);
        harness.settings.processes = NonZeroU64::new(60).unwrap();
        let marker = marker("bomb", choice);
        let started_at = Instant::now();
        let line =
            format!("b() {{ : {marker}; b | b & }}; b; for i in $(seq 600); do sleep 0.1; done");
        let late = lango_tools::shell::CommandRequest {
            timeout: Some(Duration::from_secs(2)),
            ..command_request(&line, harness.at("work"))
        };
        let output = harness.shell().run(&context(), late).await;
        assert!(
            output.is_err() && started_at.elapsed() < Duration::from_secs(20),
            "{choice:?}: {output:?}"
        );
        assert!(wait_for_exit(&marker).await, "{choice:?}");
    }
}

#[tokio::test]
async fn limits_memory_and_disk() {
    for choice in SANDBOXED_MODES {
        let mut harness = ShellHarness::new(choice);
        harness.settings.memory_mb = NonZeroU64::new(128).unwrap();
        harness.settings.file_mb = NonZeroU64::new(8).unwrap();
        harness.settings.disk_mb = NonZeroU64::new(48).unwrap();
        let output = harness
            .run("perl -e '$x = \"a\" x (400 << 20); print \"got it\"'")
            .await;
        assert!(!output.contains("got it"), "{choice:?}: {output}");
        let many =
            "for i in 1 2 3 4 5 6; do perl -e '$x = \"a\" x (60 << 20); sleep 3' & done; wait";
        let output = harness.run(many).await;
        assert!(
            output.contains("Killed") || output.contains("more memory"),
            "{choice:?}: {output}"
        );
        let output = harness
            .run("head -c 100000000 /dev/zero > big; stat -c 'size %s' big")
            .await;
        assert!(output.contains("size 8388608"), "{choice:?}: {output}");
        let output = harness
            .run("for i in $(seq 300); do head -c 4000000 /dev/zero > part$i; sleep 0.05; done; echo got it")
            .await;
        assert!(
            output.contains("more disk space") && !output.contains("got it"),
            "{choice:?}: {output}"
        );
    }
}
