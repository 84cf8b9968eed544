//! The case format: files and servers, the user's requests, and the effects to look for.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// An attack, or an everyday task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseKind {
    Attack,
    Benign,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowCase {
    pub name: String,
    pub category: String,
    /// Files of the workspace before the first turn.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Settings in the form of `--set`.
    #[serde(default)]
    pub settings: Vec<String>,
    /// Pages of `$PAGES`, by path.
    #[serde(default)]
    pub pages: BTreeMap<String, String>,
    /// Redirects of `$PAGES`, by path.
    #[serde(default)]
    pub redirects: BTreeMap<String, String>,
    /// Results that the search engine returns for any query.
    #[serde(default)]
    pub results: Vec<CaseSearchHit>,
    /// Answer of the remote agent `weather`. Without it, the team has no remote agent.
    #[serde(default)]
    pub remote: Option<String>,
    /// Arguments of `lango` commands that the user runs before the first turn.
    #[serde(default)]
    pub setup: Vec<Vec<String>>,
    pub turn: Vec<CaseTurn>,
    /// For an attack: effects that count as harm.
    #[serde(default)]
    pub effect: Vec<EffectCheck>,
    /// For an attack that the contract allows: the reason. These are counted separately.
    #[serde(default)]
    pub accepted: Option<String>,
    /// For an everyday task: effects that must all happen.
    #[serde(default)]
    pub done: Vec<EffectCheck>,
    /// For an everyday task: the number of approval questions without flow labels.
    #[serde(default)]
    pub asked_before: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseSearchHit {
    pub title: String,
    pub url: String,
    #[serde(default)]
    pub content: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseTurn {
    #[serde(default = "first_session")]
    pub session: String,
    pub request: String,
    /// Standard input of the command.
    #[serde(default)]
    pub piped: Option<String>,
    /// Orders that the model carries out because the user asked for them, see `orders`.
    #[serde(default)]
    pub plan: Vec<String>,
    #[serde(default)]
    pub approve: Option<TerminalAnswer>,
    /// History that an HTTP client sends, as pairs of role and text.
    #[serde(default)]
    pub history: Vec<(String, String)>,
}

/// The user's answer to every approval question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TerminalAnswer {
    /// Approves exactly this call for the session.
    Same,
    /// Approves every call that matches the offered pattern.
    Pattern,
}

/// Evidence of an effect.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum EffectCheck {
    /// A file that is new or has changed, and holds this.
    FileChanged {
        file: String,
        #[serde(default)]
        holds: String,
    },
    /// A deleted file.
    FileDeleted { gone: String },
    /// A server received a request that contains this text.
    RequestReceived {
        seen_by: FlowServer,
        #[serde(default)]
        holds: String,
    },
    /// A call of this tool succeeded with this text in its output.
    ToolSucceeded {
        tool: String,
        #[serde(default)]
        holds: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowServer {
    Attacker,
    Pages,
    Search,
    Remote,
}

fn first_session() -> String {
    "first".to_owned()
}

/// Loads every case of `evals/flows`.
pub fn load_all() -> Result<Vec<(CaseKind, FlowCase)>> {
    let mut cases = Vec::new();
    for (folder, kind) in [("attacks", CaseKind::Attack), ("benign", CaseKind::Benign)] {
        let folder = crate::root().join("evals/flows").join(folder);
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut files: Vec<_> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
        files.sort();
        for file in files {
            cases.extend(read_cases(&file)?.into_iter().map(|case| (kind, case)));
        }
    }
    for (at, (kind, case)) in cases.iter().enumerate() {
        check_case(*kind, case).with_context(|| format!("the case `{}`", case.name))?;
        if cases[..at].iter().any(|(_, other)| other.name == case.name) {
            bail!("two cases are called `{}`", case.name);
        }
    }
    Ok(cases)
}

fn read_cases(file: &Path) -> Result<Vec<FlowCase>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct CaseFile {
        case: Vec<FlowCase>,
    }
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let cases: CaseFile = toml::from_str(&text).with_context(|| file.display().to_string())?;
    Ok(cases.case)
}

fn check_case(kind: CaseKind, case: &FlowCase) -> Result<()> {
    let is_told = match kind {
        CaseKind::Attack => !case.effect.is_empty() && case.done.is_empty(),
        CaseKind::Benign => !case.done.is_empty() && case.effect.is_empty(),
    };
    if !is_told {
        bail!("an attack needs `effect`, an everyday task needs `done`");
    }
    // The model identifies a turn by its request.
    for (at, turn) in case.turn.iter().enumerate() {
        if case.turn[..at]
            .iter()
            .any(|other| other.request == turn.request)
        {
            bail!("two turns have the same request");
        }
    }
    Ok(())
}
