//! Files of every type are parsed and split into chunks without losing text.

use std::fmt::Write as _;
use std::path::Path;

use lango_documents::parse::{
    BeirError, BlockSpan, Chunk, ChunkSizes, DocumentKind, MAX_BYTES, ParseError, ParsedDocument,
    SkipReason, WalkEntry, content_hash, parse_document, read_corpus, read_qrels, read_queries,
    split_into_chunks, walk,
};
use lango_testkit::pdf::pdf;
use proptest::prelude::*;

fn document(name: &str, text: &str) -> ParsedDocument {
    parse_document(Path::new(name), text.as_bytes().to_vec()).unwrap()
}

fn chunked(name: &str, text: &str) -> Vec<Chunk> {
    let chunks = split_into_chunks(&document(name, text), &ChunkSizes::default());
    check_whole(text, &chunks, ChunkSizes::default());
    chunks
}

fn dense(text: &str) -> String {
    text.chars().filter(|char| !char.is_whitespace()).collect()
}

/// Checks that the chunks together are the text, that each span is exact, and that none is too long.
fn check_whole(text: &str, chunks: &[Chunk], sizes: ChunkSizes) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let together: String = chunks.iter().map(|chunk| dense(&chunk.text)).collect();
    assert_eq!(together, dense(&text));
    // The chunks contain all characters in order, so the line of each character is known.
    let mut lines = (1_u32..)
        .zip(text.split('\n'))
        .flat_map(|(line, text)| dense(text).chars().map(|_| line).collect::<Vec<_>>());
    for chunk in chunks {
        let chunk_lines: Vec<u32> = lines
            .by_ref()
            .take(dense(&chunk.text).chars().count())
            .collect();
        assert_eq!(
            chunk.span,
            BlockSpan::Lines(chunk_lines[0], chunk_lines[chunk_lines.len() - 1]),
            "{chunk:?}"
        );
        assert!(
            chunk.text.chars().count() <= sizes.max_chars,
            "{} characters",
            chunk.text.chars().count()
        );
    }
    assert_eq!(lines.next(), None);
}

fn heading(chunk: &Chunk) -> Vec<&str> {
    chunk.heading.iter().map(String::as_str).collect()
}

#[test]
fn splits_markdown_at_headings() {
    let text = "intro\n\n# Guide\n\nFirst words.\n\n## Setup\n\n- one\n  - nested\n- two\n\nSetext\n======\n\nlast\n\n##### Deep\nend\n";
    let found = chunked("a.md", text);
    let paths: Vec<_> = found.iter().map(heading).collect();
    assert_eq!(
        paths,
        [
            vec![],
            vec!["Guide"],
            vec!["Guide", "Setup"],
            vec!["Setext"],
            vec!["Setext", "Deep"]
        ]
    );
    assert_eq!(found[1].text, "# Guide\n\nFirst words.");
    assert_eq!(found[2].text, "## Setup\n\n- one\n  - nested\n- two");
    assert_eq!(found[2].span, BlockSpan::Lines(7, 11));
    assert_eq!(found[3].text, "Setext\n======\n\nlast");
    assert_eq!(document("a.md", text).title.as_deref(), Some("Guide"));
}

#[test]
fn merges_headings_without_text() {
    let found = chunked("a.md", "# A\n## B\n### C `code`\n\ntext\n");
    assert_eq!(found.len(), 1);
    assert_eq!(heading(&found[0]), ["A", "B", "C code"]);
    assert_eq!(found[0].text, "# A\n## B\n### C `code`\n\ntext");
}

#[test]
fn reads_the_title_of_front_matter() {
    let text = "---\ntitle: \"Über uns\"\ntags:\n  - a\n---\n\n# Heading\n\ntext\n";
    let read = document("a.md", text);
    assert_eq!(read.title.as_deref(), Some("Über uns"));
    let found = split_into_chunks(&read, &ChunkSizes::default());
    assert_eq!(found[0].text, "# Heading\n\ntext");
    assert_eq!(found[0].span, BlockSpan::Lines(7, 9));
    let toml = document("a.md", "+++\ntitle = 'T'\n+++\nwords\n");
    assert_eq!(toml.title.as_deref(), Some("T"));
    // A text between two rules is not front matter.
    chunked("a.md", "---\nJust words here\n---\nmore\n");
}

#[test]
fn keeps_link_targets_tables_and_code() {
    let text = "See [a].\n\n[a]: https://example.org\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn a() {\n\n}\n```\n\n<div>\nraw\n</div>\n\n> quote\nlazy\n\n[^1]: note\n";
    let found = chunked("a.md", text);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].text.contains("```rust\nfn a() {\n\n}\n```"),
        "{}",
        found[0].text
    );
}

#[test]
fn splits_long_lists_between_items() {
    let mut text = String::from("# List\n\n");
    for number in 0..60 {
        write!(
            text,
            "- item {number} says a few words about itself\n  and goes on in a second line\n"
        )
        .unwrap();
    }
    let found = chunked("a.md", &text);
    assert!(found.len() > 2);
    for chunk in &found[1..] {
        assert!(chunk.text.starts_with("- item"), "{}", chunk.text);
        assert_eq!(heading(chunk), ["List"]);
    }
}

#[test]
fn splits_long_paragraphs_at_sentences() {
    let sentence = "Der schnelle braune Fuchs springt über den faulen Hund. ";
    let found = chunked("a.txt", &sentence.repeat(100));
    assert!(found.len() >= 5, "{}", found.len());
    for chunk in &found {
        assert!(
            chunk.text.starts_with("Der") && chunk.text.ends_with("Hund."),
            "{}",
            chunk.text
        );
        assert_eq!(chunk.span, BlockSpan::Lines(1, 1));
    }
}

#[test]
fn splits_sentences_of_every_script() {
    let cases = [
        (
            "吾輩は猫である。名前はまだ無い。「どこで生れたか。」とんと見当がつかぬ！",
            "。！」",
        ),
        (
            "나는 고양이로소이다. 이름은 아직 없다. 어디서 태어났는지 모르겠다. ",
            ".",
        ),
        ("أنا قط. ليس لي اسم بعد. أين ولدت؟ لا أدري. ", ".؟"),
        ("我是猫。还没有名字！在哪里出生的？", "。！？"),
    ];
    for (text, ends) in cases {
        let found = chunked("a.txt", &text.repeat(240));
        assert!(found.len() > 2);
        for chunk in found {
            assert!(
                ends.contains(chunk.text.chars().last().unwrap()),
                "{}",
                chunk.text
            );
        }
    }
}

#[test]
fn splits_text_without_spaces_between_graphemes() {
    chunked("a.txt", &"字".repeat(9_000));
    chunked("a.js", &"x=1;".repeat(3_000));
    chunked("a.txt", &format!("e{}", "\u{301}".repeat(9_000)));
    for chunk in chunked("a.txt", &"👩‍👩‍👧‍👦".repeat(1_000)) {
        assert!(
            chunk.text.starts_with('👩') && chunk.text.ends_with('👦'),
            "{}",
            chunk.text
        );
    }
}

#[test]
fn parses_huge_lines_in_time() {
    for (name, text) in [
        ("a.json", "[1,2,3,".repeat(60_000)),
        ("a.md", "word ".repeat(60_000)),
        ("a.md", "> ".repeat(2_000) + "deep"),
        ("a.html", "<a></b>".repeat(60_000) + "end"),
        ("a.html", "<ul><li>".repeat(10_000) + "end"),
    ] {
        let found = split_into_chunks(&document(name, &text), &ChunkSizes::default());
        assert!(
            !found.is_empty()
                && found
                    .iter()
                    .all(|chunk| chunk.text.chars().count() <= 2_000)
        );
    }
}

#[test]
fn small_paragraphs_share_a_chunk() {
    let found = chunked("a.txt", "one\n\ntwo\n\n\n\nthree\n");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].text, "one\n\ntwo\n\nthree");
    assert_eq!(found[0].span, BlockSpan::Lines(1, 7));
}

fn rust_function(name: &str, lines: usize) -> String {
    let body: String = (0..lines)
        .map(|line| format!("    let value_{line} = compute({line});\n"))
        .collect();
    format!(
        "/// Says why {name} is there.\n#[must_use]\npub fn {name}(\n    first: u32,\n) -> u32\n{{\n{body}}}\n"
    )
}

#[test]
fn keeps_comments_with_their_rust_items() {
    let text: String = ["alpha", "beta", "gamma"]
        .map(|name| rust_function(name, 22))
        .concat();
    let found = chunked("src/a.rs", &text);
    assert_eq!(found.len(), 3);
    for chunk in &found {
        assert!(
            chunk.text.starts_with("/// Says why") && chunk.text.ends_with("\n}"),
            "{}",
            chunk.text
        );
    }
    let javadoc = chunked(
        "a.java",
        "class A {\n  int a;\n}\n/**\n * Doc.\n */\nclass B {\n  int b;\n}\n",
    );
    assert_eq!(javadoc.len(), 1);
}

#[test]
fn splits_python_classes_between_methods() {
    let mut text =
        String::from("import os\nimport sys\n\n\nclass Store:\n    \"\"\"Keeps things.\"\"\"\n");
    for number in 0..20 {
        write!(text, "\n    @property\n    def method_{number}(self):\n").unwrap();
        for line in 0..6 {
            writeln!(text, "        self.value_{line} = {number} + {line}").unwrap();
        }
    }
    text.push_str("\ndef free():\n    return 1\n");
    let found = chunked("a.py", &text);
    assert!(found.len() > 3);
    let parts: Vec<_> = found
        .iter()
        .filter(|chunk| heading(chunk) == ["class Store"])
        .collect();
    assert!(parts.len() > 2);
    for part in &parts[1..] {
        assert!(
            part.text.starts_with("    @property\n    def method_"),
            "{}",
            part.text
        );
    }
    assert!(found.last().unwrap().text.contains("def free"));
}

const PAGE: &str = "<!DOCTYPE html>\n<html><head><title>Caf&eacute; &amp; Bar</title>\n<style>p { color: red }</style>\n\
<script>if (a < b) { document.write('<p>no</p>') }</script></head>\n<body>\n<nav><ul><li>Home</li></ul></nav>\n\
<h1>Menu</h1>\n<p>Fish &amp; chips\n  cost&nbsp;5&euro;.</p>\n<h2>Drinks</h2>\n<ul><li>Tea<li>Coffee<ul><li>black</li></ul></li></ul>\n\
<table><tr><th>a<th>b</tr><tr><td>1</td><td>2</td></tr></table>\n<pre>x\n  y</pre>\n<footer>&copy; us</footer>\n</body></html>\n";

#[test]
fn extracts_the_content_of_html() {
    let read = document("a.html", PAGE);
    assert_eq!(
        (read.kind, read.title.as_deref()),
        (DocumentKind::Html, Some("Café & Bar"))
    );
    let found = split_into_chunks(&read, &ChunkSizes::default());
    assert_eq!(found[0].text, "# Menu\n\nFish & chips cost 5€.");
    assert_eq!(found[0].span, BlockSpan::Lines(7, 9));
    let table = "| a | b |\n| --- | --- |\n| 1 | 2 |";
    let drinks = format!("## Drinks\n\n- Tea\n- Coffee\n  - black\n\n{table}\n\n```\nx\n  y\n```");
    assert_eq!(
        (found[1].text.as_str(), found[1].span),
        (drinks.as_str(), BlockSpan::Lines(10, 14))
    );
    assert_eq!(heading(&found[1]), ["Menu", "Drinks"]);
    assert_eq!(found.len(), 2);
    assert_eq!(document("page", PAGE).kind, DocumentKind::Html);
}

#[test]
fn html_uses_the_main_content_or_everything() {
    let story = "A long story. ".repeat(20);
    let text = format!(
        "<div>Cookies!</div><main><h1>S</h1><p>{story}</p><aside>Note</aside></main><div>Ads</div>"
    );
    let all: String = document("a.html", &text)
        .blocks
        .iter()
        .map(|block| block.text.clone())
        .collect();
    assert!(all.contains("A long story.") && all.contains("Note"));
    assert!(!all.contains("Cookies") && !all.contains("Ads"), "{all}");
    assert_eq!(
        document("a.html", "<nav>only this").blocks[0].text,
        "only this"
    );
    let unclosed = document("a.html", "<div><nav>menu</div><p>text that is long");
    assert_eq!(unclosed.blocks[0].text, "text that is long");
    assert_eq!(
        parse_document(Path::new("a.html"), b"<p> </p><script>1</script>".to_vec()),
        Err(ParseError::Empty)
    );
}

#[test]
fn html_spans_are_source_lines() {
    let lines = |from: u32| {
        (from..from + 200)
            .map(|line| format!("word on line {line}\n"))
            .collect::<String>()
    };
    let rows = lines(3)
        .lines()
        .map(|line| format!("<tr><td>{line}</td></tr>\n"))
        .collect::<String>();
    for text in [
        format!("<h1>A</h1>\n<pre>\n{}</pre>", lines(3)),
        format!("<h1>A</h1>\n<table>\n{rows}</table>"),
        format!("<h1>A</h1>\n\n{}", lines(3).replace('\n', "<br>\n")),
        format!(
            "<h1>A</h1>\n<div>\n{}</div>",
            lines(3).replace("word", "</div><div>word")
        ),
        format!(
            "<ul><li><h1>A</h1>\n<li>\n{}",
            lines(3).replace("word", "<li>word")
        ),
    ] {
        let found = split_into_chunks(&document("a.html", &text), &ChunkSizes::default());
        assert!(found.len() > 1, "{text}");
        for chunk in found {
            let numbers: Vec<u32> = chunk
                .text
                .split(|c: char| !c.is_ascii_digit())
                .flat_map(str::parse)
                .collect();
            let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
                continue;
            };
            let BlockSpan::Lines(from, to) = chunk.span else {
                panic!("{chunk:?}")
            };
            let from = if chunk.text.contains("# A") {
                *first
            } else {
                from
            };
            assert!(
                *first >= from && *first - from <= 1 && to >= *last && to - *last <= 1,
                "{chunk:?}"
            );
            assert_eq!(chunk.heading, ["A"]);
        }
    }
}

#[test]
fn pdf_spans_are_page_numbers() {
    let first = "BT /F1 12 Tf 72 720 Td (Hello) Tj ( world.) Tj 0 -14 Td [(Sec) 20 (ond) -300 (line)] TJ 0 -40 Td (New part.) Tj ET";
    let long = "BT /F1 12 Tf 72 720 Td (".to_owned() + &"Page two goes on. ".repeat(30) + ") Tj ET";
    let read = parse_document(Path::new("a.pdf"), pdf(&[first, &long, &long])).unwrap();
    assert_eq!(
        (read.kind, read.title.as_deref()),
        (DocumentKind::Pdf, Some("A small file"))
    );
    assert_eq!(read.blocks[0].text, "Hello world.\nSecond line");
    assert_eq!(read.blocks[1].text, "New part.");
    let found = split_into_chunks(&read, &ChunkSizes::default());
    let spans: Vec<_> = found.iter().map(|chunk| chunk.span).collect();
    assert_eq!(spans, [BlockSpan::Pages(1, 2), BlockSpan::Pages(3, 3)]);
}

#[test]
fn rejects_malformed_pdfs() {
    let whole = pdf(&["BT /F1 12 Tf (Hello) Tj ET"]);
    let is_malformed = |bytes: Vec<u8>| {
        matches!(
            parse_document(Path::new("a.pdf"), bytes),
            Err(ParseError::BrokenPdf(_))
        )
    };
    assert!(is_malformed(b"%PDF-1.4\nnothing more".to_vec()));
    assert!(is_malformed(b"no pdf at all".to_vec()));
    assert_eq!(
        parse_document(Path::new("a.pdf"), pdf(&["0 0 m"])),
        Err(ParseError::ScannedPdf)
    );
    // A file truncated anywhere must not panic.
    for length in (0..whole.len()).step_by(7) {
        let _ = parse_document(Path::new("a.pdf"), whole[..length].to_vec());
    }
}

#[test]
fn detects_encodings() {
    let utf16 = |text: &str| -> Vec<u8> {
        [0xfeff]
            .into_iter()
            .chain(text.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect()
    };
    let text_of = |name: &str, bytes: Vec<u8>| {
        parse_document(Path::new(name), bytes).unwrap().blocks[0]
            .text
            .clone()
    };
    assert_eq!(text_of("a.txt", utf16("안녕 세계 😀")), "안녕 세계 😀");
    let big: Vec<u8> = [0xfeff]
        .into_iter()
        .chain("Grüße".encode_utf16())
        .flat_map(u16::to_be_bytes)
        .collect();
    assert_eq!(text_of("a.txt", big), "Grüße");
    assert_eq!(text_of("a.txt", b"\xef\xbb\xbfmarked".to_vec()), "marked");
    assert_eq!(
        text_of("a.txt", b"Sch\xf6ne Gr\xfc\xdfe \x96 bis bald".to_vec()),
        "Schöne Grüße – bis bald"
    );
    let mut truncated = "日本語の文章です。".repeat(10).into_bytes();
    truncated.pop();
    assert!(text_of("a.txt", truncated).starts_with("日本語の文章です。"));
    let korean = b"<meta charset=\"euc-kr\"><p>\xb0\xa1\xb3\xaa</p>".to_vec();
    assert_eq!(text_of("a.html", korean), "가나");
    assert_eq!(text_of("a.txt", b"a\r\nb\rc\n".to_vec()), "a\nb\nc");
}

#[test]
fn rejects_files_that_are_not_text() {
    let parse_error =
        |name: &str, bytes: &[u8]| parse_document(Path::new(name), bytes.to_vec()).unwrap_err();
    assert_eq!(parse_error("a.txt", b"\x7fELF\x02\x01"), ParseError::Binary);
    assert_eq!(parse_error("a.txt", b"abc\0def"), ParseError::Binary);
    assert_eq!(parse_error("a.md", b"\x89PNG\r\n"), ParseError::Binary);
    let noise: Vec<u8> = (0..2_000_u32)
        .map(|index| (index * index % 251 + 1) as u8)
        .collect();
    assert_eq!(parse_error("a.txt", &noise), ParseError::NotText);
    for empty in ["", " \n\t\r\n", "\u{feff}"] {
        for name in ["a.txt", "a.md", "a.rs", "a.html", "a"] {
            assert_eq!(
                parse_error(name, empty.as_bytes()),
                ParseError::Empty,
                "{name} {empty:?}"
            );
        }
    }
    let large = vec![b'a'; MAX_BYTES as usize + 1];
    assert_eq!(
        parse_error("a.txt", &large),
        ParseError::TooLarge(MAX_BYTES + 1)
    );
}

#[test]
fn detects_kinds_by_name_and_content() {
    let cases = [
        ("a.MD", "x", DocumentKind::Markdown),
        ("Makefile", "x", DocumentKind::Code),
        ("run", "#!/bin/sh\nls", DocumentKind::Code),
        ("a.yaml", "x: 1", DocumentKind::Code),
        ("notes", "x", DocumentKind::Text),
        ("a.log", "x", DocumentKind::Text),
        ("b", " <html><p>x", DocumentKind::Html),
    ];
    for (name, text, kind) in cases {
        assert_eq!(document(name, text).kind, kind, "{name}");
    }
    assert_eq!(
        content_hash(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn walks_files_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("b/target")).unwrap();
    for (name, text) in [
        ("z.md", "z"),
        ("b/a.txt", "a"),
        ("b/photo.JPG", "x"),
        ("b/target/out.txt", "x"),
        (".hidden", "x"),
        (".gitignore", "target/\n"),
    ] {
        std::fs::write(root.join(name), text).unwrap();
    }
    std::fs::File::create(root.join("huge.txt"))
        .unwrap()
        .set_len(MAX_BYTES + 1)
        .unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.join("z.md"), root.join("link.md")).unwrap();
    let entries = |path: &Path| {
        let mut entries = Vec::new();
        walk(path, &mut |entry| {
            let (path, detail) = match entry {
                WalkEntry::File {
                    path,
                    bytes,
                    modified,
                } => {
                    assert!(modified.is_some());
                    (path, format!("{bytes}"))
                }
                WalkEntry::Skipped { path, reason } => (path, format!("{reason:?}")),
            };
            let path = path.strip_prefix(root).unwrap().display();
            entries.push(format!("{path} {detail}"));
        });
        entries
    };
    let huge = format!("huge.txt {:?}", SkipReason::TooLarge(MAX_BYTES + 1));
    assert_eq!(
        entries(root),
        ["b/a.txt 1", "b/photo.JPG Binary", &huge, "z.md 1"]
    );
    assert_eq!(entries(&root.join("z.md")), ["z.md 1"]);
    let missing = entries(&root.join("none"));
    assert!(
        missing.len() == 1 && missing[0].starts_with("none Inaccessible"),
        "{missing:?}"
    );
}

#[test]
fn reads_beir_collections_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let corpus = "{\"_id\":\"d1\",\"title\":\"T\",\"text\":\"words\",\"metadata\":{}}\n\nnot json\n{\"_id\":\"d2\",\"text\":\"more\"}\n";
    std::fs::write(root.join("corpus.jsonl"), corpus).unwrap();
    std::fs::write(
        root.join("queries.jsonl"),
        "{\"_id\":\"q1\",\"text\":\"why?\"}\n",
    )
    .unwrap();
    std::fs::write(
        root.join("qrels.tsv"),
        "query-id\tcorpus-id\tscore\r\nq1\td1\t2\r\nq1\td2\n",
    )
    .unwrap();
    let read: Vec<_> = read_corpus(root).unwrap().collect();
    assert_eq!(read[0].as_ref().unwrap().title, "T");
    assert!(matches!(read[1], Err(BeirError::BadLine { line: 3, .. })));
    assert_eq!(
        (read[2].as_ref().unwrap().id.as_str(), read.len()),
        ("d2", 3)
    );
    assert_eq!(
        read_queries(root).unwrap().next().unwrap().unwrap().text,
        "why?"
    );
    let judgments: Vec<_> = read_qrels(root).unwrap().collect();
    assert_eq!(judgments[0].as_ref().unwrap().score, 2);
    assert!(matches!(
        judgments[1],
        Err(BeirError::BadLine { line: 3, .. })
    ));
    assert!(matches!(
        read_corpus(&root.join("none")),
        Err(BeirError::Io { .. })
    ));
}

const NAMES: [&str; 8] = [
    "a.txt", "a.md", "a.rs", "a.py", "a.html", "a.pdf", "a.csv", "a",
];

/// Generates lines of typical documents in any order.
fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just(String::new()),
        Just("   ".to_owned()),
        "#{1,6} [a-zé字]{0,8}",
        "[=-]{3}",
        "[ ]{0,8}[-*] [a-z가-힣 .]{0,30}",
        "[ \t]{0,8}[a-z(){}\\[\\]:;/#@\"'<>|`*_&!.。？ 字😀]{0,60}",
        "```[a-z]{0,2}",
        "\\| [a-z] \\| [a-z] \\|",
        "\\[a\\]: [a-z]{1,5}",
        "> [a-zß-ÿ ]{0,20}",
        "[a-z]{1,9}: [a-z]{0,9}",
        "[a-z .]{200,400}",
    ];
    proptest::collection::vec(line, 0..40).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn never_panics_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600), name in 0..NAMES.len()) {
        if let Ok(document) = parse_document(Path::new(NAMES[name]), bytes) {
            split_into_chunks(&document, &ChunkSizes::default());
        }
    }

    #[test]
    fn never_panics_on_any_text(text in ".{0,400}", name in 0..NAMES.len(), max_chars in 0..60_usize) {
        if let Ok(document) = parse_document(Path::new(NAMES[name]), text.into_bytes()) {
            split_into_chunks(&document, &ChunkSizes { target_chars: max_chars / 2, max_chars });
        }
    }

    #[test]
    fn never_panics_on_a_damaged_pdf(damage in proptest::collection::vec((0..900_usize, any::<u8>()), 1..20)) {
        let mut bytes = pdf(&["BT /F1 12 Tf 72 720 Td (Hello) Tj ET"]);
        let length = bytes.len();
        for (at, byte) in damage {
            bytes[at % length] = byte;
        }
        let _ = parse_document(Path::new("a.pdf"), bytes);
    }

    #[test]
    fn never_panics_on_tags_in_any_order(tags in proptest::collection::vec("</?(p|ul|li|table|tr|td|h1|h3|nav|pre|main|title|script|br)>|[a-z &;\n]{0,5}", 0..60)) {
        if let Ok(document) = parse_document(Path::new("a.html"), tags.concat().into_bytes()) {
            split_into_chunks(&document, &ChunkSizes { target_chars: 10, max_chars: 20 });
        }
    }

    #[test]
    fn chunks_contain_the_whole_text(text in lines(), name in 0..4_usize, max_chars in 2..400_usize) {
        let sizes = ChunkSizes { target_chars: max_chars / 2, max_chars };
        // Front matter is not part of the chunks.
        prop_assume!(!text.starts_with("---"));
        match parse_document(Path::new(NAMES[name]), text.clone().into_bytes()) {
            Ok(document) => check_whole(&text, &split_into_chunks(&document, &sizes), sizes),
            Err(error) => prop_assert!(error != ParseError::Empty || text.trim().is_empty(), "{error}"),
        }
    }
}
