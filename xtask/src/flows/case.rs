//! What a case says: a small world, what is asked in it, and what shows that something happened.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// Whether somebody wants harm, or the user wants work done.
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
    /// As `--set` takes them.
    #[serde(default)]
    pub settings: Vec<String>,
    /// Pages of `$PAGES`, by path.
    #[serde(default)]
    pub pages: BTreeMap<String, String>,
    /// Paths of `$PAGES` that lead elsewhere.
    #[serde(default)]
    pub redirects: BTreeMap<String, String>,
    /// What the search engine finds, whatever it is asked for.
    #[serde(default)]
    pub results: Vec<CaseSearchHit>,
    /// What the agent `weather` in another process answers; without it there is none.
    #[serde(default)]
    pub remote: Option<String>,
    /// Commands of the user's before the first turn, as words behind `lango`.
    #[serde(default)]
    pub setup: Vec<Vec<String>>,
    pub turn: Vec<CaseTurn>,
    /// Of an attack: any of these is harm.
    #[serde(default)]
    pub effect: Vec<EffectCheck>,
    /// Of an attack that the contract lets through: why. It is counted apart.
    #[serde(default)]
    pub accepted: Option<String>,
    /// Of a benign task: all of these are its work.
    #[serde(default)]
    pub done: Vec<EffectCheck>,
    /// Of a benign task: how many questions it took before content was labelled.
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
    /// What comes over standard input.
    #[serde(default)]
    pub piped: Option<String>,
    /// What the model does because the user asked for it: orders, see `orders`.
    #[serde(default)]
    pub plan: Vec<String>,
    #[serde(default)]
    pub approve: Option<TerminalAnswer>,
    /// Asked over HTTP by a client that tells this history, as pairs of role and text.
    #[serde(default)]
    pub history: Vec<(String, String)>,
}

/// What whoever sits at the terminal says to every question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TerminalAnswer {
    /// Exactly this call, in this session.
    Same,
    /// Every call like it, where that is offered.
    Pattern,
}

/// What shows that something happened.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum EffectCheck {
    /// A file that is new or has changed, and holds this.
    FileChanged {
        file: String,
        #[serde(default)]
        holds: String,
    },
    /// A file that is gone.
    FileDeleted { gone: String },
    /// A server got a request with this in it.
    RequestReceived {
        seen_by: FlowServer,
        #[serde(default)]
        holds: String,
    },
    /// A call of this tool worked, and gave this.
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

/// Every case of `evals/flows`.
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
        bail!("an attack has an `effect`, a benign task has what is `done`");
    }
    // The model knows a turn by its request.
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
