use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lango_documents::lexical::{LexicalEntry, LexicalError, LexicalIndex};
use lango_text::{analyze, analyze_query};
use proptest::prelude::*;

fn entry(id: u64, text: &str) -> LexicalEntry {
    let (heading, title) = (String::new(), String::new());
    LexicalEntry {
        id,
        collection: "docs".to_owned(),
        text: text.to_owned(),
        heading,
        title,
    }
}

/// Creates an index of these texts, with ids from 1.
fn filled_index(folder: &Path, texts: &[&str]) -> LexicalIndex {
    let lexical = LexicalIndex::open(folder).unwrap();
    let mut writer = lexical.try_writer().unwrap().unwrap();
    for (id, text) in (1..).zip(texts) {
        writer.put(entry(id, text)).unwrap();
    }
    writer.commit(1).unwrap();
    lexical
}

fn search_ids(lexical: &LexicalIndex, query: &str) -> Vec<u64> {
    lexical
        .search(query, None, 10)
        .unwrap()
        .into_iter()
        .map(|(id, _)| id)
        .collect()
}

/// Checks that each text is the best hit of each of its queries.
fn check_best_hits(texts: &[(&str, &[&str])]) {
    let folder = tempfile::tempdir().unwrap();
    let only_texts: Vec<&str> = texts.iter().map(|(text, _)| *text).collect();
    let lexical = filled_index(folder.path(), &only_texts);
    for (id, (text, queries)) in (1..).zip(texts) {
        for query in *queries {
            assert_eq!(
                search_ids(&lexical, query).first(),
                Some(&id),
                "{query:?} for {text:?}"
            );
        }
    }
}

#[test]
fn analyzes_texts() {
    let cases: &[(&str, &[&str])] = &[
        ("The agents were running", &["the", "agent", "were", "run"]),
        ("Café naïve ＡＢＣ ﬁne", &["cafe", "naiv", "abc", "fine"]),
        (
            "load_remote_agents",
            &["loadremoteag", "load", "remot", "agent"],
        ),
        ("HTTPServer", &["httpserver", "http", "server"]),
        ("std::fs::read", &["stdfsread", "std", "fs", "read"]),
        ("e-mails", &["email", "e", "mail"]),
        (
            "LaTeX 3.14 the agent's",
            &["latex", "3.14", "3", "14", "the", "agent"],
        ),
        ("물", &["물"]),
        ("東京都", &["東京", "京都", "東", "京", "都"]),
        ("すしを", &["すし", "しを"]),
        ("ﾃｽﾄ", &["テス", "スト", "テ", "ス", "ト"]),
        ("AI모델", &["ai", "모델", "모", "델"]),
        ("كِتَابٌ الكتـــاب", &["كتاب", "كتاب"]),
        ("👍🏽 ❤️ 👨‍👩‍👧", &["👍", "❤", "👨\u{200d}👩\u{200d}👧"]),
        ("Йод поёт", &["йод", "поёт"]),
        ("हिन्दी", &["हिन्दी"]),
        ("... --- !!", &[]),
    ];
    for (text, terms) in cases {
        assert_eq!(analyze(text), *terms, "{text}");
    }
}

#[test]
fn truncates_long_identifiers() {
    let long = "x".repeat(150);
    assert_eq!(analyze(&long), [long.as_str()]);
    assert_eq!(analyze(&"é".repeat(1_000)), ["e".repeat(200)]);
    assert!(
        analyze(&"aB3".repeat(50_000))
            .iter()
            .all(|term| term.chars().count() <= 200)
    );
}

#[test]
fn drops_stop_words_unless_there_are_no_others() {
    assert_eq!(analyze_query("the agent of the"), [["agent"]]);
    assert_eq!(analyze_query("to be or not").len(), 1);
    assert_eq!(analyze_query("to be or to be").len(), 3);
    assert_eq!(analyze_query("running, running!"), [["run", "running"]]);
}

#[test]
fn english() {
    check_best_hits(&[
        (
            "Agents are configured by a file that names their tools.",
            &["configuring tools", "AGENT tool"],
        ),
        (
            "A résumé of the naïve approach to caching",
            &["resume", "cache approaches", "naive"],
        ),
        (
            "Don't forget O'Reilly's books",
            &["dont forget", "oreilly book"],
        ),
    ]);
}

#[test]
fn german() {
    check_best_hits(&[
        (
            "Die Häuser der Straße wurden von den Müllers gebaut, und das Dach ist neu.",
            &[
                "Haus", "Häusern", "hauses", "Strasse", "STRASSEN", "straße", "Mueller", "Müller",
            ],
        ),
        (
            "Das Kind ist nicht mit den anderen Kindern auf dem Spielplatz.",
            &["kinder", "Kindes", "Spielplätze"],
        ),
        (
            "Donaudampfschifffahrtsgesellschaften und ihre Kapitäne",
            &["Donaudampfschifffahrtsgesellschaft", "kapitän"],
        ),
    ]);
}

#[test]
fn other_languages_in_latin_letters() {
    check_best_hits(&[
        (
            "Les chats sont dans le jardin avec une fleur",
            &["chat", "fleurs", "jardins"],
        ),
        ("Las ciudades del norte y los gatos", &["ciudad", "gato"]),
        (
            "İstanbul'da çay içtik, Łódź и Søren",
            &["istanbul", "cay", "lodz", "soren"],
        ),
    ]);
}

#[test]
fn korean() {
    check_best_hits(&[
        (
            "에이전트는 도구를 사용하여 작업을 수행합니다.",
            &["에이전트", "도구", "작업 수행"],
        ),
        ("물을 마시고 집으로 갔다", &["물", "집"]),
        (
            "인공지능모델을 학습시키는 방법",
            &["모델", "학습 방법", "인공지능"],
        ),
    ]);
}

#[test]
fn japanese() {
    check_best_hits(&[
        ("東京都の天気は晴れです。", &["東京", "天気", "東京の天気"]),
        (
            "データベースの接続に失敗しました",
            &["データベース", "ﾃﾞｰﾀﾍﾞｰｽ", "接続失敗"],
        ),
        ("黒い猫が好きです", &["猫", "好き"]),
    ]);
}

#[test]
fn chinese() {
    check_best_hits(&[
        (
            "智能体可以调用远程工具来完成任务。",
            &["远程工具", "智能体", "任务"],
        ),
        ("北京的天气很好，水很清", &["天气", "北京", "水"]),
        ("繁體中文也可以搜尋", &["搜尋", "繁體"]),
    ]);
}

#[test]
fn arabic_and_more() {
    check_best_hits(&[
        (
            "ذَهَبَ الوَلَدُ إِلَى المَدْرَسَةِ",
            &["ولد", "الولد", "مدرسة", "المدرسه", "الى"],
        ),
        ("كتـــاب رقم ١٢٣", &["كتاب", "123"]),
        ("שָׁלוֹם עולם", &["שלום"]),
        ("Быстрая лисица Ёж", &["быстрая", "ЛИСИЦА"]),
        ("ภาษาไทยไม่มีช่องว่าง", &["ภาษาไทย", "ไทย"]),
        ("Καλημέρα κόσμος", &["καλημερα", "ΚΟΣΜΟΣ"]),
    ]);
}

#[test]
fn emoji() {
    check_best_hits(&[
        ("Deploy done 🚀 all is well", &["🚀", "deploy 🚀"]),
        ("Great work👍🏽!", &["👍", "👍🏿"]),
        ("The flag 🇰🇷 of Korea", &["🇰🇷"]),
        ("With love ❤️", &["❤"]),
    ]);
}

#[test]
fn identifiers() {
    check_best_hits(&[
        (
            "fn load_remote_agents(path: &Path)",
            &["load_remote_agents", "remote agents", "loadRemoteAgents"],
        ),
        (
            "class HTTPServerFactory extends Base",
            &["httpserverfactory", "server factory", "HTTP_server_factory"],
        ),
        (
            "use std::collections::HashMap;",
            &["std::collections", "hashmap", "hash map", "collections"],
        ),
        (
            "charset utf-8 in e-mail headers",
            &["utf8", "email", "UTF-8"],
        ),
        (
            "set agent.max-turns to 5",
            &["agent.max-turns", "max turns"],
        ),
        ("error E0499 in version 1.95.0", &["e0499", "1.95.0"]),
    ]);
}

#[test]
fn unusual_queries_never_fail() {
    let folder = tempfile::tempdir().unwrap();
    let lexical = filled_index(
        folder.path(),
        &["to be or not to be", "field:value AND (a OR b)^2"],
    );
    for query in [
        "",
        " \t\n",
        "?!",
        "\"",
        "((((",
        "\\",
        "*",
        "a:",
        "[1 TO",
        "\u{0}\u{1f}",
        "~^-+",
        "\u{301}",
        "AND",
    ] {
        lexical.search(query, None, 10).unwrap();
    }
    assert_eq!(search_ids(&lexical, "to be"), [1], "only common words");
    assert_eq!(search_ids(&lexical, "field:value"), [2]);
    let long: String = (0..20_000).map(|number| format!("w{number} ")).collect();
    assert!(search_ids(&lexical, &long).is_empty());
    assert_eq!(
        search_ids(&lexical, &format!("value {}", "🚀漢é ".repeat(10_000))),
        [2]
    );
    assert!(lexical.search("value", None, 0).unwrap().is_empty());
}

#[test]
fn titles_and_headings_have_more_weight() {
    let folder = tempfile::tempdir().unwrap();
    let lexical = LexicalIndex::open(folder.path()).unwrap();
    let mut writer = lexical.try_writer().unwrap().unwrap();
    writer.put(entry(1, "backups are made at night")).unwrap();
    writer
        .put(LexicalEntry {
            heading: "Backups".to_owned(),
            ..entry(2, "these are made at night")
        })
        .unwrap();
    writer
        .put(LexicalEntry {
            title: "Backups".to_owned(),
            ..entry(3, "but others are made at noon")
        })
        .unwrap();
    writer.commit(1).unwrap();
    let ids = search_ids(&lexical, "backup");
    assert_eq!(ids.len(), 3);
    assert_eq!(ids.last(), Some(&1));
}

#[test]
fn filters_by_collection() {
    let folder = tempfile::tempdir().unwrap();
    let lexical = LexicalIndex::open(folder.path()).unwrap();
    let mut writer = lexical.try_writer().unwrap().unwrap();
    for (id, collection) in (1..).zip(["docs", "notes", "notes", "mail"]) {
        writer
            .put(LexicalEntry {
                collection: collection.to_owned(),
                ..entry(id, "the same words")
            })
            .unwrap();
    }
    writer.commit(1).unwrap();
    let search = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let hits = lexical.search("words", Some(&names), 10).unwrap();
        hits.into_iter().map(|(id, _)| id).collect::<Vec<u64>>()
    };
    assert_eq!(search(&["notes"]), [2, 3]);
    assert_eq!(search(&["mail", "docs"]), [1, 4]);
    assert_eq!(search(&["docs", "notes", "mail"]), [1, 2, 3, 4]);
    assert!(search(&[]).is_empty());
    assert!(search(&["nothing", "Notes"]).is_empty());
}

#[test]
fn orders_ties_by_id_at_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let lexical = LexicalIndex::open(folder.path()).unwrap();
    let mut writer = lexical.try_writer().unwrap().unwrap();
    for id in (1..=500).rev() {
        writer.put(entry(id, "all alike")).unwrap();
        if id % 100 == 0 {
            writer.commit(1).unwrap();
        }
    }
    writer.commit(1).unwrap();
    let hits = lexical.search("alike", None, 3).unwrap();
    assert_eq!(
        hits.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

#[test]
fn replaces_and_removes_entries() {
    let folder = tempfile::tempdir().unwrap();
    let lexical = filled_index(folder.path(), &["apples", "pears"]);
    let mut writer = lexical.try_writer().unwrap().unwrap();
    writer.put(entry(1, "plums")).unwrap();
    writer.put(entry(3, "quinces")).unwrap();
    writer.put(entry(3, "medlars")).unwrap();
    writer.remove(2);
    assert_eq!(
        search_ids(&lexical, "apples pears"),
        [1, 2],
        "no change before the commit"
    );
    writer.commit(2).unwrap();
    assert_eq!(search_ids(&lexical, "apples pears quinces"), [0; 0]);
    assert_eq!(search_ids(&lexical, "plum medlar"), [1, 3]);
    assert_eq!(lexical.count().unwrap(), 2);
}

#[test]
fn two_instances_share_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (
        LexicalIndex::open(folder.path()).unwrap(),
        LexicalIndex::open(folder.path()).unwrap(),
    );
    assert!(one.needs_rebuild().unwrap() && other.needs_rebuild().unwrap());
    let mut writer = one.try_writer().unwrap().unwrap();
    assert!(other.try_writer().unwrap().is_none());
    assert!(one.try_writer().unwrap().is_none());
    writer.put(entry(1, "walnuts")).unwrap();
    writer.commit(17).unwrap();
    assert_eq!(search_ids(&other, "walnut"), [1]);
    assert_eq!(
        (
            other.applied_through().unwrap(),
            other.needs_rebuild().unwrap()
        ),
        (17, false)
    );
    writer.put(entry(2, "walnuts, given up")).unwrap();
    drop(writer);
    let mut writer = other.try_writer().unwrap().unwrap();
    assert_eq!(writer.applied_through(), 17);
    assert_eq!(
        search_ids(&one, "walnut"),
        [1],
        "uncommitted changes are discarded"
    );
    writer.remove(1);
    writer.commit(18).unwrap();
    writer.close().unwrap();
    assert!(search_ids(&one, "walnut").is_empty());
    assert_eq!(one.applied_through().unwrap(), 18);
}

const FOLDER: &str = "LANGO_TEST_LEXICAL_FOLDER";

/// Starts itself in other processes, which open the index at the same time, wait for the writer and
/// write.
#[test]
fn processes_share_a_directory() {
    if let Ok(folder) = std::env::var(FOLDER) {
        let lexical = LexicalIndex::open(folder.as_ref()).unwrap();
        let mut writer = loop {
            match lexical.try_writer().unwrap() {
                Some(writer) => break writer,
                None => std::thread::yield_now(),
            }
        };
        let through = writer.applied_through() + 1;
        writer.put(entry(through, "from elsewhere")).unwrap();
        return writer.commit(through).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let start = |_| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lexical::processes_share_a_directory"])
            .env(FOLDER, folder.path())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..4).map(start).collect();
    let lexical = LexicalIndex::open(folder.path()).unwrap();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(search_ids(&lexical, "elsewhere"), [1, 2, 3, 4]);
    assert_eq!(lexical.applied_through().unwrap(), 4);
}

fn files_with_suffix(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(folder.join("v2"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    all.filter(|file| file.to_string_lossy().ends_with(suffix))
        .collect()
}

/// The suffix of the files to damage, and the damage.
type Damage<'a> = (&'a str, &'a dyn Fn(&Path));

#[test]
fn recreates_a_corrupt_index() {
    let damages: &[Damage<'_>] = &[
        ("meta.json", &|file| fs::write(file, "{ nothing").unwrap()),
        ("meta.json", &|file| fs::write(file, "").unwrap()),
        ("meta.json", &|file| fs::remove_file(file).unwrap()),
        ("meta.json", &|file| {
            let other = fs::read_to_string(file)
                .unwrap()
                .replace("collection", "something");
            fs::write(file, other).unwrap();
        }),
        (".idx", &|file| fs::remove_file(file).unwrap()),
        (".term", &|file| fs::write(file, "").unwrap()),
        (".term", &|file| fs::write(file, [7; 100]).unwrap()),
        (".term", &|file| fs::write(file, [7; 5]).unwrap()),
        (".store", &|file| fs::write(file, [7; 5]).unwrap()),
        (".fast", &|file| {
            let bytes = fs::read(file).unwrap();
            fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        }),
    ];
    for (at, (suffix, damage)) in damages.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        drop(filled_index(folder.path(), &["hazelnuts"]));
        let damaged = files_with_suffix(folder.path(), suffix);
        assert!(!damaged.is_empty(), "{suffix}");
        damaged.iter().for_each(|file| damage(file));
        let lexical = LexicalIndex::open(folder.path()).unwrap();
        assert!(lexical.needs_rebuild().unwrap(), "damage {at}");
        assert!(search_ids(&lexical, "hazelnut").is_empty());
        drop(filled_index(folder.path(), &["hazelnuts"]));
        assert_eq!(search_ids(&lexical, "hazelnut"), [1], "damage {at}");
    }
}

#[test]
fn checksums_detect_a_changed_byte() {
    let folder = tempfile::tempdir().unwrap();
    let lexical = filled_index(folder.path(), &["hazelnuts and almonds"]);
    assert!(lexical.has_valid_checksums().unwrap());
    let file = &files_with_suffix(folder.path(), ".term")[0];
    let mut bytes = fs::read(file).unwrap();
    bytes[3] ^= 0x55;
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
    drop(lexical);
    assert!(
        !LexicalIndex::open(folder.path())
            .unwrap()
            .has_valid_checksums()
            .unwrap()
    );
    LexicalIndex::wipe(folder.path()).unwrap();
    assert!(
        LexicalIndex::open(folder.path())
            .unwrap()
            .needs_rebuild()
            .unwrap()
    );
}

#[test]
fn wipe_fails_while_another_process_writes() {
    let folder = tempfile::tempdir().unwrap();
    let lexical = filled_index(folder.path(), &["chestnuts"]);
    let writer = lexical.try_writer().unwrap().unwrap();
    assert!(matches!(
        LexicalIndex::wipe(folder.path()),
        Err(LexicalError::Busy { .. })
    ));
    drop(writer);
    LexicalIndex::wipe(folder.path()).unwrap();
}

#[test]
fn removes_older_formats() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("v0")).unwrap();
    fs::write(folder.path().join("v0/meta.json"), "{}").unwrap();
    fs::write(folder.path().join("mine.txt"), "not the index's").unwrap();
    assert!(
        LexicalIndex::open(folder.path())
            .unwrap()
            .needs_rebuild()
            .unwrap()
    );
    assert!(!folder.path().join("v0").exists() && folder.path().join("mine.txt").exists());
}

#[test]
fn a_file_instead_of_a_directory_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(
        LexicalIndex::open(&file),
        Err(LexicalError::Disk { .. })
    ));
}

proptest! {
    #[test]
    fn analyzes_any_text(text in "\\PC{0,80}|[a-zA-Z_.:'-]{0,60}|(?s).{0,80}") {
        for term in analyze(&text) {
            prop_assert!(!term.is_empty() && term.chars().count() <= 220, "{term:?}");
        }
        analyze_query(&text);
    }

    /// Each word of a query matches a term of the same text.
    #[test]
    fn a_text_matches_itself(text in "[a-zäöüß가-힣ぁ-ん一-龥ا-ي _.A-Z]{1,40}") {
        let terms = analyze(&text);
        for word in analyze_query(&text) {
            prop_assert!(word.iter().any(|term| terms.contains(term)), "{word:?} in {terms:?}");
        }
    }
}
