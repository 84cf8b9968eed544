//! `lango knowledge …`: lists, shows and deletes entries of the knowledge base.

use std::fmt::Write as _;

use lango_app::capability::memory::forget::{ForgetSelection, LearnedItem, LearnedItemId};
use lango_app::capability::memory::knowledge_base::{entry_line, normalize_key};
use lango_domain::Stores;
use lango_domain::event::Principal;
use lango_domain::knowledge::{KnowledgeCategory, KnowledgeEntry, Learning};
use lango_text::sanitize::{one_line, strip_control_chars};
use lango_text::suggest;
use serde_json::{Value, json};

use super::memory::forget_output;
use super::{CommandContext, runtime, with_damage_warnings};
use crate::args::{GlobalArgs, KnowledgeCommand};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub fn run(global: &GlobalArgs, command: &KnowledgeCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let stores = context.stores.open()?;
    let output = runtime()?.block_on(async {
        match command {
            KnowledgeCommand::List {
                learnings: true, ..
            } => learnings(&stores).await,
            KnowledgeCommand::List { category, .. } => list(&stores, category.as_deref()).await,
            KnowledgeCommand::Show { key } => show(&stores, key).await,
            KnowledgeCommand::History { key } => history(&stores, key).await,
            KnowledgeCommand::Delete { keys } => delete(&stores, keys).await,
        }
    })?;
    Ok(with_damage_warnings(output, &stores))
}

async fn list(stores: &Stores, category: Option<&str>) -> Result<CommandOutput, CliError> {
    let category = category.map(parse_category).transpose()?;
    let mut entries = stores.knowledge.entries(&Principal::local()).await?;
    entries.retain(|entry| category.is_none_or(|category| entry.category == category));
    let mut plain = entries
        .iter()
        .map(|entry| strip_control_chars(&entry_line(entry)) + "\n")
        .collect::<String>();
    if entries.is_empty() {
        plain.push_str("There are no entries yet.\n");
    }
    Ok(CommandOutput::new(plain, json!({ "items": entries })))
}

fn parse_category(category: &str) -> Result<KnowledgeCategory, CliError> {
    KnowledgeCategory::from_name(category).ok_or_else(|| {
        let names = KnowledgeCategory::ALL.map(KnowledgeCategory::as_str);
        let error = CliError::usage(format!("unknown category `{category}`"));
        let expected = format!("expected one of {}", names.join(", "));
        error.with_hint(suggest::did_you_mean(category, names).unwrap_or(expected))
    })
}

async fn learnings(stores: &Stores) -> Result<CommandOutput, CliError> {
    let learnings = stores.knowledge.learnings(&Principal::local()).await?;
    let mut plain = String::new();
    for learning in &learnings {
        let Learning {
            id,
            trigger,
            fix,
            helped,
            failed,
            ..
        } = learning;
        let share = (learning.confidence() * 100.0).round();
        let stats = styled(
            DIM,
            format!("{share} %, helped {helped} of {} times", helped + failed),
        );
        let _ = writeln!(
            plain,
            "{id}  when {}: {}  {stats}",
            one_line(trigger),
            one_line(fix)
        );
    }
    if learnings.is_empty() {
        plain.push_str("There are no learnings yet.\n");
    }
    Ok(CommandOutput::new(
        plain,
        json!({ "items": learnings.iter().map(learning_json).collect::<Vec<_>>() }),
    ))
}

fn learning_json(learning: &Learning) -> Value {
    json!({
        "id": learning.id, "trigger": learning.trigger, "fix": learning.fix, "category": learning.category,
        "confidence": learning.confidence(), "helped": learning.helped, "failed": learning.failed,
        "source": learning.source, "at": learning.at,
    })
}

async fn load_versions(stores: &Stores, key: &str) -> Result<Vec<KnowledgeEntry>, CliError> {
    let key = normalize_key(key);
    let versions = stores.knowledge.history(&Principal::local(), &key).await?;
    if versions.is_empty() {
        return Err(unknown_key_error(stores, &key).await);
    }
    Ok(versions)
}

async fn unknown_key_error(stores: &Stores, key: &str) -> CliError {
    let entries = stores
        .knowledge
        .entries(&Principal::local())
        .await
        .unwrap_or_default();
    let error = CliError::usage(format!("unknown key `{}`", strip_control_chars(key)));
    let hint = suggest::did_you_mean(key, entries.iter().map(|entry| entry.key.as_str()));
    error.with_hint(hint.unwrap_or_else(|| "`lango knowledge list` lists the keys".to_owned()))
}

async fn show(stores: &Stores, key: &str) -> Result<CommandOutput, CliError> {
    let versions = load_versions(stores, key).await?;
    let newest = &versions[0];
    Ok(CommandOutput::new(format_entry(newest), json!(newest)))
}

async fn history(stores: &Stores, key: &str) -> Result<CommandOutput, CliError> {
    let versions = load_versions(stores, key).await?;
    let plain = versions
        .iter()
        .map(format_entry)
        .collect::<Vec<_>>()
        .join("\n");
    Ok(CommandOutput::new(
        plain,
        json!({ "key": versions[0].key, "items": versions }),
    ))
}

/// Formats one version of an entry with its time and source.
fn format_entry(entry: &KnowledgeEntry) -> String {
    let KnowledgeEntry {
        key,
        version,
        category,
        content,
        tags,
        source,
        at,
    } = entry;
    let session = source
        .session
        .as_ref()
        .map_or("a deleted session".to_owned(), |session| {
            format!("session {}", one_line(session.as_str()))
        });
    let when = at.strftime("%Y-%m-%d %H:%M");
    let tags = if tags.is_empty() {
        String::new()
    } else {
        format!(", tags {}", tags.join(", "))
    };
    let label = if source.label.is_plain() {
        String::new()
    } else {
        format!("; {}", source.label)
    };
    let details = format!(
        "version {version}, {category}{tags}; {when}, {session}, turn {}, by {}{label}",
        source.turn, source.by
    );
    format!(
        "{} {}\n{}\n",
        styled(NAME, strip_control_chars(key)),
        styled(DIM, one_line(&details)),
        strip_control_chars(content)
    )
}

async fn delete(stores: &Stores, keys: &[String]) -> Result<CommandOutput, CliError> {
    for key in keys {
        load_versions(stores, key).await?;
    }
    let keys: Vec<String> = keys.iter().map(|key| normalize_key(key)).collect();
    let (principal, forgetter) = (
        Principal::local(),
        lango_app::open_forgetter(stores.clone()),
    );
    let forgotten = match forgetter.find_keys_to_forget(&principal, &keys).await? {
        ForgetSelection::Matched {
            to_forget: forgotten,
            ..
        } => forgetter.forget(&principal, &forgotten).await?,
        ForgetSelection::NoMatch | ForgetSelection::Ambiguous(_) => Vec::new(),
    };
    let is_version = |item: &&LearnedItem| matches!(item.id, LearnedItemId::Entry { .. });
    let versions = forgotten.iter().filter(is_version).count();
    let mut output = forget_output(&forgotten, &[]);
    output.json["deleted"] = json!(keys);
    output.json["versions"] = json!(versions);
    Ok(output)
}
