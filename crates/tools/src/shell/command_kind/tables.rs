//! The commands for which one approval can cover others of the same kind.

/// Programs that only read and print, with their options that do more.
pub const READERS: &[(&str, &[&str])] = &[
    ("ls", &[]),
    ("cat", &[]),
    ("head", &[]),
    ("tail", &[]),
    ("wc", &[]),
    ("grep", &[]),
    // Starts a program for each file.
    (
        "rg",
        &[
            "--pre",
            "--pre-glob",
            "--hostname-bin",
            "--search-zip",
            "-z",
        ],
    ),
    ("stat", &[]),
    // Writes a database.
    ("file", &["--compile", "-C"]),
    ("du", &[]),
    ("df", &[]),
    // Sets the clock.
    ("date", &["--set", "-s"]),
    ("echo", &[]),
    ("printf", &[]),
    ("pwd", &[]),
    ("cut", &[]),
    ("diff", &["--paginate", "-l"]),
    ("cmp", &[]),
    ("which", &[]),
    ("whoami", &[]),
    ("id", &[]),
    ("uname", &[]),
    // Writes its output to files.
    ("tree", &["-o", "-R"]),
    ("sha256sum", &[]),
    ("md5sum", &[]),
    ("basename", &[]),
    ("dirname", &[]),
    ("realpath", &[]),
    ("readlink", &[]),
    ("jq", &[]),
    ("nl", &[]),
    ("seq", &[]),
    ("true", &[]),
    ("test", &[]),
];

/// A command that runs the project's own code, with options that choose what is built and how it is
/// reported.
pub struct BuildCommand {
    pub program: &'static str,
    pub command: &'static str,
    pub options: &'static [&'static str],
    /// True if the arguments after `--` go to the project's own code.
    pub forwards_args: bool,
}

const CARGO_OPTIONS: &[&str] = &[
    "-p",
    "--package=",
    "--workspace",
    "--all",
    "--exclude=",
    "--lib",
    "--bins",
    "--bin=",
    "--tests",
    "--test=",
    "--examples",
    "--example=",
    "--benches",
    "--all-targets",
    "--doc",
    "--release",
    "-r",
    "--features=",
    "-F",
    "--all-features",
    "--no-default-features",
    "--no-run",
    "--no-fail-fast",
    "--keep-going",
    "--offline",
    "--locked",
    "--frozen",
    "-q",
    "--quiet",
    "-v",
    "-vv",
    "--verbose",
    "--color=",
    "--message-format=",
    "-j",
    "--jobs=",
];

const GO_OPTIONS: &[&str] = &[
    "-v",
    "-race",
    "-short",
    "-run",
    "-count=",
    "-timeout=",
    "-cover",
    "-failfast",
    "-json",
];

const fn cargo(command: &'static str, passes_on: bool) -> BuildCommand {
    BuildCommand {
        program: "cargo",
        command,
        options: CARGO_OPTIONS,
        forwards_args: passes_on,
    }
}

const fn go(command: &'static str) -> BuildCommand {
    BuildCommand {
        program: "go",
        command,
        options: GO_OPTIONS,
        forwards_args: false,
    }
}

pub const BUILD_COMMANDS: &[BuildCommand] = &[
    cargo("build", false),
    cargo("check", false),
    cargo("test", true),
    cargo("clippy", false),
    BuildCommand {
        program: "cargo",
        command: "fmt",
        options: &["--check", "--all", "-p"],
        forwards_args: false,
    },
    BuildCommand {
        program: "cargo",
        command: "tree",
        options: &["-p", "-i", "-d", "-e", "--depth="],
        forwards_args: false,
    },
    go("build"),
    go("test"),
    go("vet"),
    BuildCommand {
        program: "npm",
        command: "test",
        options: &[],
        forwards_args: true,
    },
    BuildCommand {
        program: "npm",
        command: "ls",
        options: &["--all", "--depth=", "--json"],
        forwards_args: false,
    },
];
