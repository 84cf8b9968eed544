//! Suggestions of known names that are similar to an unknown one.

/// Returns the known names most similar to `name`, best first, or none if none is similar enough.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = normalize(name);
    let mut near: Vec<(f64, &str)> = known
        .into_iter()
        .map(|candidate| (similarity(&wanted, &normalize(candidate)), candidate))
        .filter(|(score, _)| *score >= 0.7)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.into_iter()
        .map(|(_, candidate)| candidate)
        .take(3)
        .collect()
}

/// Returns `did you mean …?` if there is a similar name.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near = nearest(name, known);
    let quoted: Vec<String> = near
        .iter()
        .map(|candidate| format!("`{candidate}`"))
        .collect();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
}

fn normalize(name: &str) -> String {
    name.to_lowercase().replace(['-', '_', ' '], "")
}

fn similarity(a: &str, b: &str) -> f64 {
    if a.len() >= 3 && (b.starts_with(a) || a.starts_with(b)) {
        return 0.95;
    }
    strsim::normalized_damerau_levenshtein(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typos_abbreviations_and_other_spellings() {
        let known = ["multiAgent", "maxDelegationRounds", "agentsDir"];
        assert_eq!(nearest("multiAgnet", known), ["multiAgent"]);
        assert_eq!(nearest("multi_agent", known), ["multiAgent"]);
        assert_eq!(nearest("maxDel", known), ["maxDelegationRounds"]);
        assert!(nearest("zebra", known).is_empty());
        assert!(nearest("", known).is_empty());
    }

    #[test]
    fn formats_a_question() {
        assert_eq!(
            did_you_mean("operater", ["operator", "vault"]).as_deref(),
            Some("did you mean `operator`?")
        );
        assert_eq!(did_you_mean("zzz", ["operator"]), None);
    }
}
