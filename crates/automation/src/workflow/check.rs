//! Checks of a whole workflow: ids, dependencies, references, conditions, and the names of agents and tools.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lango_domain::Tool;
use lango_domain::spanned::{KeyErrorKind, SpannedKind, SpannedValue, validate_keys};
use lango_text::suggest;
use serde_json::Value;

use super::definition::{MAX_CHAIN, StepAction, Workflow};
use super::error::{ErrorList, FilePosition};
use super::expression::check_types;
use super::reference::{Reference, ReferenceSource};
use super::step_file::StepDraft;

/// The agents and tools that workflows can name.
#[derive(Clone, Debug, Default)]
pub struct WorkflowCatalog {
    pub agents: BTreeSet<String>,
    /// Tools with the JSON Schema of their arguments.
    pub tools: BTreeMap<String, Value>,
}

impl WorkflowCatalog {
    pub fn new<'a>(
        agents: impl IntoIterator<Item = &'a str>,
        tools: impl IntoIterator<Item = &'a Tool>,
    ) -> Self {
        Self {
            agents: agents.into_iter().map(str::to_owned).collect(),
            tools: tools
                .into_iter()
                .map(|tool| (tool.name.clone(), tool.parameters.clone()))
                .collect(),
        }
    }
}

/// Checks everything that can be known without the names of agents and tools.
pub(super) fn check_steps(
    workflow: &Workflow,
    drafts: &[StepDraft<'_>],
    errors: &mut ErrorList<'_>,
) {
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for (at, draft) in drafts.iter().enumerate() {
        if draft.id.is_empty() {
            continue;
        }
        if let Some(first) = positions.get(draft.id.as_str()) {
            let line = drafts[*first].id_at.line;
            let message = format!("step `{}` exists already, on line {line}", draft.id);
            errors.push_with_hint(draft.id_at, message, "give every step its own id");
        } else {
            positions.insert(&draft.id, at);
        }
    }
    let graph = DependencyGraph::build(drafts, &positions, errors);
    graph.report_cycles(drafts, errors);
    graph.report_long_chains(drafts, errors);
    for (at, draft) in drafts.iter().enumerate() {
        let ancestors = graph.ancestors(at);
        for (reference, position) in &draft.references {
            let known = KnownSteps {
                positions: &positions,
                ancestors: &ancestors,
            };
            check_reference(workflow, draft, reference, known)
                .unwrap_or_else(|(message, hint)| errors.push_with_hint(*position, message, hint));
        }
        if let Some((condition, text, value)) = &draft.condition {
            for error in check_types(condition, workflow) {
                let at = errors.position_in(value, text, error.offset);
                let message = format!("`if`: {}", error.message);
                errors.push_with_hint(at, message, error.hint.unwrap_or_default());
            }
        }
    }
}

/// The steps that a reference can name.
#[derive(Clone, Copy)]
struct KnownSteps<'a> {
    positions: &'a HashMap<&'a str, usize>,
    /// The steps that are over when the step with the reference starts.
    ancestors: &'a BTreeSet<usize>,
}

fn check_reference(
    workflow: &Workflow,
    draft: &StepDraft<'_>,
    reference: &Reference,
    known: KnownSteps<'_>,
) -> Result<(), (String, String)> {
    match &reference.source {
        ReferenceSource::Param(name) => {
            let names: Vec<&str> = workflow.params.iter().map(|p| p.name.as_str()).collect();
            if names.contains(&name.as_str()) {
                return Ok(());
            }
            let near = suggest::did_you_mean(name, names);
            let hint = near.unwrap_or_else(|| format!("add it: `params: {{{name}: …}}`"));
            Err((format!("there is no parameter `{name}`"), hint))
        }
        ReferenceSource::Step { id, .. } => match known.positions.get(id.as_str()) {
            None => {
                let near = suggest::did_you_mean(id, known.positions.keys().copied());
                let hint = near.unwrap_or_else(|| {
                    "name a step of this workflow, or a parameter with `params.`; write `\\{{` for plain text"
                        .to_owned()
                });
                Err((format!("there is no step `{id}`"), hint))
            }
            Some(_) if *id == draft.id => Err((
                format!("step `{id}` refers to itself"),
                "refer to a step that it depends on".to_owned(),
            )),
            Some(at) if !known.ancestors.contains(at) => Err((
                format!("step `{id}` may not be over when `{}` starts", draft.id),
                format!("add `{id}` to its `depends_on`"),
            )),
            Some(_) => Ok(()),
        },
    }
}

/// Which steps depend on which, by their positions.
struct DependencyGraph {
    dependencies: Vec<Vec<usize>>,
}

impl DependencyGraph {
    /// Builds the graph. Reports unknown and repeated dependencies.
    fn build(
        drafts: &[StepDraft<'_>],
        positions: &HashMap<&str, usize>,
        errors: &mut ErrorList<'_>,
    ) -> Self {
        let mut dependencies = Vec::new();
        for draft in drafts {
            let mut own = Vec::new();
            for (id, at) in &draft.depends_on {
                match positions.get(id.as_str()) {
                    None => {
                        let near = suggest::did_you_mean(id, positions.keys().copied());
                        let hint =
                            near.unwrap_or_else(|| "name a step of this workflow".to_owned());
                        errors.push_with_hint(*at, format!("there is no step `{id}`"), hint);
                    }
                    Some(found) if own.contains(found) => {
                        let message = format!("`{id}` is listed twice");
                        errors.push_with_hint(*at, message, "remove one of them");
                    }
                    Some(found) => own.push(*found),
                }
            }
            dependencies.push(own);
        }
        Self { dependencies }
    }

    /// Reports every cycle once, with its steps in order.
    fn report_cycles(&self, drafts: &[StepDraft<'_>], errors: &mut ErrorList<'_>) {
        let mut is_reported = vec![false; self.dependencies.len()];
        for start in 0..self.dependencies.len() {
            let Some(cycle) = self.cycle_through(start) else {
                continue;
            };
            if cycle.iter().any(|at| is_reported[*at]) {
                continue;
            }
            cycle.iter().for_each(|at| is_reported[*at] = true);
            let names: Vec<String> = cycle
                .iter()
                .chain(cycle.first())
                .map(|at| format!("`{}`", drafts[*at].id))
                .collect();
            let message = format!("steps wait for each other: {}", names.join(" → "));
            let at = drafts[start].depends_on.first();
            let at = at.map_or(drafts[start].id_at, |(_, at)| *at);
            errors.push_with_hint(at, message, "remove one of these dependencies");
        }
    }

    /// Returns the shortest cycle through a step.
    fn cycle_through(&self, start: usize) -> Option<Vec<usize>> {
        let mut came_from: HashMap<usize, usize> = HashMap::new();
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for next in &self.dependencies[at] {
                if *next == start {
                    let mut cycle = vec![at];
                    let mut back = at;
                    while let Some(before) = came_from.get(&back).filter(|_| back != start) {
                        cycle.push(*before);
                        back = *before;
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if !came_from.contains_key(next) {
                    came_from.insert(*next, at);
                    queue.push_back(*next);
                }
            }
        }
        None
    }

    /// Returns all steps that are over before a step starts.
    fn ancestors(&self, step: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = self.dependencies[step].clone();
        while let Some(at) = open.pop() {
            if found.insert(at) {
                open.extend(&self.dependencies[at]);
            }
        }
        found
    }

    fn report_long_chains(&self, drafts: &[StepDraft<'_>], errors: &mut ErrorList<'_>) {
        // Without cycles, this many rounds find the length of every chain.
        let mut lengths = vec![1_usize; self.dependencies.len()];
        for _ in 0..=MAX_CHAIN {
            for (at, dependencies) in self.dependencies.iter().enumerate() {
                let longest = dependencies.iter().map(|next| lengths[*next]).max();
                let length = longest.map_or(1, |longest| longest + 1);
                lengths[at] = length.min(MAX_CHAIN + 1);
            }
        }
        let too_long = lengths.iter().position(|length| *length > MAX_CHAIN);
        if let Some(at) = too_long
            && self.cycle_free()
        {
            let message = format!("more than {MAX_CHAIN} steps depend on each other in a row");
            let hint = "split the workflow into several";
            errors.push_with_hint(drafts[at].id_at, message, hint);
        }
    }

    fn cycle_free(&self) -> bool {
        (0..self.dependencies.len()).all(|start| self.cycle_through(start).is_none())
    }
}

/// Checks the names of agents and tools, and the arguments of tools.
pub(super) fn check_names(
    catalog: &WorkflowCatalog,
    drafts: &[StepDraft<'_>],
    errors: &mut ErrorList<'_>,
) {
    for draft in drafts {
        match &draft.action {
            Some(StepAction::Agent {
                agent: Some(agent), ..
            }) if !catalog.agents.contains(agent) => {
                let names = catalog.agents.iter().map(String::as_str);
                let near = suggest::did_you_mean(agent, names);
                let hint = near.unwrap_or_else(|| {
                    let names: Vec<&str> = catalog.agents.iter().map(String::as_str).collect();
                    format!("agents are {}", names.join(", "))
                });
                let message = format!("there is no agent `{agent}`");
                errors.push_with_hint(draft.action_at, message, hint);
            }
            Some(StepAction::Tool { tool, .. }) => match catalog.tools.get(tool) {
                None => {
                    let near =
                        suggest::did_you_mean(tool, catalog.tools.keys().map(String::as_str));
                    let hint =
                        near.unwrap_or_else(|| "list tools with `lango agent tree`".to_owned());
                    let message = format!("there is no tool `{tool}`");
                    errors.push_with_hint(draft.action_at, message, hint);
                }
                Some(schema) => check_arguments(draft, tool, schema, errors),
            },
            _ => {}
        }
    }
}

/// Checks the names of arguments. Their values are checked when the tool is called.
fn check_arguments(draft: &StepDraft<'_>, tool: &str, schema: &Value, errors: &mut ErrorList<'_>) {
    if let Some(arguments) = draft.arguments {
        for error in validate_keys(schema, arguments) {
            let at = FilePosition {
                line: error.line,
                column: error.column,
            };
            let (message, hint) = match error.kind {
                KeyErrorKind::Unknown { suggestion } => (
                    format!("`{tool}` has no argument `{}`", error.path),
                    suggestion.map(|name| format!("did you mean `{name}`?")),
                ),
                KeyErrorKind::NotATable => {
                    // A reference becomes the value that the tool needs.
                    if is_reference(arguments, &error.path) {
                        continue;
                    }
                    (format!("`{}` must have keys and values", error.path), None)
                }
            };
            let hint = hint.unwrap_or_else(|| format!("see the arguments of `{tool}`"));
            errors.push_with_hint(at, message, hint);
        }
    }
    let given: Vec<&str> = match draft.arguments.map(|arguments| &arguments.kind) {
        Some(SpannedKind::Map(entries)) => entries.iter().map(|e| e.key.as_str()).collect(),
        _ => Vec::new(),
    };
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    for name in required.filter(|name| !given.contains(name)) {
        let message = format!("`{tool}` needs the argument `{name}`");
        let hint = format!("add it under `with`: `{name}: …`");
        errors.push_with_hint(draft.action_at, message, hint);
    }
}

fn is_reference(arguments: &SpannedValue, path: &str) -> bool {
    let value = path.split('.').try_fold(arguments, |value, part| {
        let SpannedKind::Map(entries) = &value.kind else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == part)?;
        Some(&entry.value)
    });
    matches!(
        value.map(|value| &value.kind),
        Some(SpannedKind::Scalar(Value::String(text))) if text.contains("{{")
    )
}
