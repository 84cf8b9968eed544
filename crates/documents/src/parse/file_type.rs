//! Detects the type of a file by its name and its first bytes.

use std::path::Path;

use encoding_rs::Encoding;

use super::{DocumentKind, Shape};

const MARKDOWN: &[&str] = &["md", "markdown", "mdown", "mkd", "mdx", "qmd", "rmd"];
const HTML: &[&str] = &["html", "htm", "xhtml"];
const TEXT: &[&str] = &[
    "txt", "text", "rst", "org", "adoc", "asciidoc", "tex", "srt", "vtt", "eml",
];
/// Text whose lines are independent records.
const RECORDS: &[&str] = &["csv", "tsv", "log", "jsonl", "ndjson"];
const CODE: &[&str] = &[
    "asm",
    "astro",
    "awk",
    "bash",
    "bat",
    "bzl",
    "c",
    "cc",
    "cfg",
    "cjs",
    "clj",
    "cljs",
    "cmake",
    "conf",
    "cpp",
    "cs",
    "css",
    "cts",
    "cu",
    "cxx",
    "d",
    "dart",
    "el",
    "elm",
    "erl",
    "ex",
    "exs",
    "f90",
    "fish",
    "fs",
    "fsx",
    "glsl",
    "go",
    "gradle",
    "graphql",
    "groovy",
    "h",
    "hcl",
    "hh",
    "hpp",
    "hs",
    "hxx",
    "ini",
    "java",
    "jl",
    "js",
    "json",
    "json5",
    "jsonc",
    "jsx",
    "kt",
    "kts",
    "less",
    "lisp",
    "lua",
    "m",
    "mjs",
    "ml",
    "mli",
    "mm",
    "mts",
    "nim",
    "nix",
    "pas",
    "php",
    "pl",
    "pm",
    "properties",
    "proto",
    "ps1",
    "py",
    "pyi",
    "r",
    "rb",
    "rkt",
    "rs",
    "sass",
    "scala",
    "scm",
    "scss",
    "sh",
    "sol",
    "sql",
    "svelte",
    "swift",
    "tcl",
    "tf",
    "toml",
    "ts",
    "tsx",
    "v",
    "vb",
    "vhd",
    "vim",
    "vue",
    "wgsl",
    "xml",
    "xsd",
    "xsl",
    "yaml",
    "yml",
    "zig",
    "zsh",
];
const CODE_NAMES: &[&str] = &[
    "makefile",
    "gnumakefile",
    "dockerfile",
    "containerfile",
    "rakefile",
    "gemfile",
    "justfile",
    "jenkinsfile",
];
const BINARY: &[&str] = &[
    "7z",
    "a",
    "aac",
    "aiff",
    "apk",
    "avi",
    "avif",
    "bin",
    "bmp",
    "bz2",
    "class",
    "dat",
    "db",
    "deb",
    "dll",
    "dmg",
    "doc",
    "docx",
    "dylib",
    "ear",
    "eot",
    "epub",
    "exe",
    "flac",
    "flv",
    "gguf",
    "gif",
    "gz",
    "heic",
    "ico",
    "img",
    "iso",
    "jar",
    "jpeg",
    "jpg",
    "lib",
    "lz4",
    "m4a",
    "m4v",
    "mkv",
    "mov",
    "mp3",
    "mp4",
    "mpeg",
    "mpg",
    "msi",
    "npy",
    "npz",
    "o",
    "obj",
    "odp",
    "ods",
    "odt",
    "ogg",
    "onnx",
    "opus",
    "otf",
    "parquet",
    "pkl",
    "png",
    "ppt",
    "pptx",
    "psd",
    "pt",
    "pth",
    "pyc",
    "pyd",
    "rar",
    "rlib",
    "rpm",
    "safetensors",
    "so",
    "sqlite",
    "sqlite3",
    "sys",
    "tar",
    "tgz",
    "tif",
    "tiff",
    "ttf",
    "war",
    "wasm",
    "wav",
    "webm",
    "webp",
    "wma",
    "wmv",
    "woff",
    "woff2",
    "xls",
    "xlsx",
    "xz",
    "zip",
    "zst",
];

/// First bytes of files that are never text, regardless of their names.
const MAGIC: &[&[u8]] = &[
    b"\x7fELF",
    b"\x89PNG",
    b"PK\x03\x04",
    b"\x1f\x8b\x08",
    b"GIF8",
    b"\xff\xd8\xff",
    b"BZh9",
    b"\xfd7zXZ",
    b"7z\xbc\xaf",
    b"\xca\xfe\xba\xbe",
    b"\0asm",
    b"SQLite format 3",
];

/// A PDF may start with other bytes; its signature is within this many bytes.
const PDF_SIGNATURE_WITHIN: usize = 1024;
/// HTML has to declare its encoding within this many bytes.
const ENCODING_WITHIN: usize = 1024;

pub fn is_pdf(path: &Path, bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(PDF_SIGNATURE_WITHIN)];
    bytes.starts_with(b"%PDF-")
        || (extension(path) == "pdf" && !bytes.is_empty())
        || (start.contains(&0) && find(start, b"%PDF-").is_some())
}

pub fn has_binary_extension(path: &Path) -> bool {
    BINARY.contains(&extension(path).as_str())
}

pub fn has_binary_magic(bytes: &[u8]) -> bool {
    MAGIC.iter().any(|magic| bytes.starts_with(magic))
}

pub fn detect_kind(path: &Path, text: &str) -> DocumentKind {
    let extension = extension(path);
    let is_one_of = |list: &[&str]| list.contains(&extension.as_str());
    if is_one_of(MARKDOWN) {
        DocumentKind::Markdown
    } else if is_one_of(HTML) {
        DocumentKind::Html
    } else if is_one_of(CODE) || CODE_NAMES.contains(&lowercase_name(path).as_str()) {
        DocumentKind::Code
    } else if is_one_of(TEXT) || is_one_of(RECORDS) {
        DocumentKind::Text
    } else {
        detect_by_content(text)
    }
}

pub fn detect_shape(path: &Path) -> Shape {
    if RECORDS.contains(&extension(path).as_str()) {
        Shape::Lines
    } else {
        Shape::Prose
    }
}

/// Returns the encoding that an HTML file declares.
pub fn declared_encoding(path: &Path, bytes: &[u8]) -> Option<&'static Encoding> {
    if !HTML.contains(&extension(path).as_str()) {
        return None;
    }
    let start = bytes[..bytes.len().min(ENCODING_WITHIN)].to_ascii_lowercase();
    let after = find(&start, b"charset=")? + b"charset=".len();
    let label = start[after..]
        .iter()
        .skip_while(|byte| matches!(byte, b'"' | b'\''));
    let label: Vec<u8> = label
        .copied()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"-_:.".contains(byte))
        .collect();
    Encoding::for_label(&label)
}

fn detect_by_content(text: &str) -> DocumentKind {
    let start: String = text
        .trim_start()
        .chars()
        .take(15)
        .collect::<String>()
        .to_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        DocumentKind::Html
    } else if start.starts_with("#!") {
        DocumentKind::Code
    } else {
        DocumentKind::Text
    }
}

fn extension(path: &Path) -> String {
    path.extension()
        .map(|extension| extension.to_string_lossy().to_lowercase())
        .unwrap_or_default()
}

fn lowercase_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().to_lowercase())
        .unwrap_or_default()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
