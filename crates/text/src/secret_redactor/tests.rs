use super::*;

fn redactor(secrets: &[(&str, &str)]) -> SecretRedactor {
    SecretRedactor::new(
        secrets
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    )
}

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
}
