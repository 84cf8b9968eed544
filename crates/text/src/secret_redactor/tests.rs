use super::*;
use proptest::prelude::*;

fn redactor(secrets: &[(&str, &str)]) -> SecretRedactor {
    SecretRedactor::new(
        secrets
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    )
}

fn stream(redactor: &SecretRedactor, parts: &[&str]) -> String {
    let mut stream = RedactedStream::new(redactor.clone());
    let mut text: String = parts.iter().map(|part| stream.push(part)).collect();
    text.push_str(&stream.finish());
    text
}

/// B130
#[test]
fn values_are_replaced_by_name() {
    let redactor = redactor(&[("A", "hunter22"), ("B", "swordfish!")]);
    assert_eq!(
        redactor.redact("x hunter22 y swordfish! z"),
        "x [secret A: set, hidden] y [secret B: set, hidden] z"
    );
    assert!(matches!(
        redactor.redact("nothing"),
        Cow::Borrowed("nothing")
    ));
    assert!(redactor.finds_in("hunter22") && !redactor.finds_in("hunter2"));
    assert_eq!(format!("{redactor:?}"), "SecretRedactor(2 secrets)");
}

/// B130
#[test]
fn every_form_is_found() {
    let redactor = redactor(&[("T", "p@ss/w\"ö rd'&<1>")]);
    for text in [
        "p@ss/w\"ö rd'&<1>",
        // base64: alone, in a header of basic authentication, and inside a longer text
        "cEBzcy93IsO2IHJkJyY8MT4=",
        "cEBzcy93IsO2IHJkJyY8MT4",
        "dXNlcjpwQHNzL3ciw7YgcmQnJjwxPg==",
        "eHA6cEBzcy93IsO2IHJkJyY8MT46eA==",
        // hex
        "704073732f7722c3b62072642726 3c313e"
            .replace(' ', "")
            .as_str(),
        "704073732F7722C3B620726427263C313E",
        // URLs: strict, JavaScript, forms, lower case
        "p%40ss%2Fw%22%C3%B6%20rd%27%26%3C1%3E",
        "p%40ss%2Fw%22%C3%B6%20rd'%26%3C1%3E",
        "p%40ss%2Fw%22%C3%B6+rd%27%26%3C1%3E",
        "p%40ss%2fw%22%c3%b6%20rd%27%26%3c1%3e",
        "p%40ss/w%22%C3%B6%20rd%27%26%3C1%3E",
        // JSON: plain, with slashes, ASCII only, and JSON inside JSON
        r#"p@ss/w\"ö rd'&<1>"#,
        r#"p@ss\/w\"ö rd'&<1>"#,
        r#"p@ss/w\"\u00f6 rd'&<1>"#,
        r#"p@ss/w\\\"ö rd'&<1>"#,
        // HTML and shell quotes
        "p@ss/w&quot;ö rd&#39;&amp;&lt;1&gt;",
        r#"p@ss/w"ö rd'\''&<1>"#,
    ] {
        let redacted = redactor.redact(&format!("<{text}>")).into_owned();
        assert!(
            redacted.contains("[secret T: set, hidden]"),
            "{text}: {redacted}"
        );
        assert!(
            redacted.len() < "<[secret T: set, hidden]>".len() + 10,
            "{redacted}"
        );
    }
}

/// B130
#[test]
fn wrapped_values_are_found() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIBAQ\n-----END KEY-----\n";
    let redactor = redactor(&[("KEY", key), ("T", &"0123456789abcdefghij".repeat(5))]);
    for text in [
        key.replace('\n', "\r\n"),
        key.replace('\n', ""),
        key.replace('\n', "\\n"),
        "only MIIEvQIBADANBgkqhkiG9w0BAQ here".to_owned(),
    ] {
        let redacted = redactor.redact(&text).into_owned();
        assert!(
            !redacted.contains("MIIEvQ") && redacted.contains("[secret KEY"),
            "{redacted}"
        );
    }
    // `base64` wraps lines after 76 characters.
    let wrapped = "MDEyMzQ1Njc4OWFiY2RlZmdoaWowMTIzNDU2Nzg5YWJjZGVmZ2hpajAxMjM0NTY3ODlhYmNkZWZn\naGlqMDEyMzQ1Njc4OWFiY2RlZmdoaWowMTIzNDU2Nzg5YWJjZGVmZ2hpag==\n";
    assert_eq!(redactor.redact(wrapped), "[secret T: set, hidden]\n");
}

#[test]
fn overlapping_values_leave_no_rest() {
    let redactor = redactor(&[("A", "abcdefgh"), ("B", "efghijkl"), ("C", "cdefgh")]);
    assert_eq!(
        redactor.redact("_abcdefghijkl_"),
        "_[secret A: set, hidden]_"
    );
    assert_eq!(
        redactor.redact("abcdefghabcdefgh"),
        "[secret A: set, hidden][secret A: set, hidden]"
    );
    assert_eq!(
        stream(&redactor, &["_abcdef", "ghijk", "l_"]),
        "_[secret A: set, hidden]_"
    );
}

#[test]
fn short_values_and_words_of_the_mark_are_left() {
    let redactor = redactor(&[("A", "12345"), ("B", " \n"), ("C", "hidden"), ("D", "")]);
    assert!(redactor.is_empty());
    assert_eq!(redactor.redact("12345 hidden"), "12345 hidden");
    assert!(
        !SecretRedactor::can_redact("A", "1\n2345") && SecretRedactor::can_redact("A", "123456")
    );
    assert!(SecretRedactor::default().is_empty());
}

#[test]
fn a_redactor_can_learn_a_value() {
    let first = redactor(&[("A", "hunter22")]);
    let second = first.with_secret("B", "swordfish".to_owned());
    assert_eq!(
        second
            .redact("hunter22 swordfish")
            .matches("hidden")
            .count(),
        2
    );
    assert_eq!(first.redact("swordfish"), "swordfish");
    let same = second.with_secret("C", "hunter22".to_owned());
    assert_eq!(same.redact("hunter22"), "[secret A: set, hidden]");
}

#[test]
fn a_stream_holds_back_only_what_may_be_a_value() {
    let redactor = redactor(&[("A", "hunter22")]);
    let mut stream = RedactedStream::new(redactor);
    assert_eq!(stream.push("plain text"), "plain text");
    assert_eq!(stream.push(" hun"), " ");
    assert_eq!(stream.push("ted "), "hunted ");
    assert_eq!(stream.push("hunter2"), "");
    assert_eq!(stream.push("2"), "[secret A: set, hidden]");
    assert_eq!(stream.push("hunt"), "");
    assert_eq!(stream.finish(), "hunt");
    assert_eq!(stream.push("er22"), "er22");
}

/// A scan of a hostile text takes time in proportion to its length.
#[test]
fn time_is_linear() {
    let value = "ab".repeat(500) + "c";
    let redactor = redactor(&[("A", &value), ("B", &"ab".repeat(700))]);
    let text = "ab".repeat(2_000_000);
    let started = std::time::Instant::now();
    assert!(redactor.redact(&text).len() < 100);
    let parts: Vec<&str> = text.as_bytes()[..200_000]
        .chunks(1)
        .map(|part| std::str::from_utf8(part).unwrap())
        .collect();
    assert!(stream(&redactor, &parts).len() < 100);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

/// Texts around a value, with characters that are part of encodings.
fn surroundings() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            Just("=".to_owned()),
            Just("\n".to_owned()),
            Just("%2".to_owned()),
            Just("\\u00".to_owned()),
            "[A-Za-z0-9+/ ]{0,12}",
            any::<char>().prop_map(String::from),
        ],
        0..6,
    )
    .prop_map(|parts| parts.concat())
}

fn cut(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let mut positions: Vec<usize> = cuts
        .iter()
        .map(|cut| text.floor_char_boundary(cut.index(text.len() + 1)))
        .collect();
    positions.extend([0, text.len()]);
    positions.sort_unstable();
    positions
        .windows(2)
        .map(|pair| text[pair[0]..pair[1]].to_owned())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// B130
    #[test]
    fn no_form_survives_in_any_surroundings_and_chunking(
        value in "[ -~äß漢😀\n]{6,40}",
        before in surroundings(),
        after in surroundings(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        prop_assume!(SecretRedactor::can_redact("A", &value));
        let redactor = redactor(&[("A", &value)]);
        for form in encoding::forms(&value) {
            let text = format!("{before}{}{after}", form.as_str());
            let redacted = redactor.redact(&text).into_owned();
            prop_assert!(redacted.contains("[secret A: set, hidden]"));
            // The text around the value may add up to another match, but no value is left.
            let rest = redacted.replace("[secret A: set, hidden]", "\u{0}");
            prop_assert!(!rest.contains(form.as_str()), "{rest:?}");
            let parts = cut(&text, &cuts);
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            prop_assert_eq!(stream(&redactor, &parts), redacted);
        }
    }

    #[test]
    fn text_without_values_is_unchanged(text in any::<String>(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let redactor = redactor(&[("A", "correct horse battery staple")]);
        prop_assert!(matches!(redactor.redact(&text), Cow::Borrowed(_)));
        let parts = cut(&text, &cuts);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        prop_assert_eq!(stream(&redactor, &parts), text);
    }
}
