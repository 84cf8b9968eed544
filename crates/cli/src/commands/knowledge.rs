//! `lango knowledge …`: lists, shows and deletes entries of the knowledge base.

use std::fmt::Write as _;

use lango_domain::event::Principal;
use lango_domain::knowledge::{KnowledgeCategory, KnowledgeEntry, KnowledgeStore, Learning};
use lango_domain::session::StoreError;
use lango_memory::forget::{ForgetSelection, LearnedItem, LearnedItemId};
use lango_memory::knowledge_base::{entry_line, normalize_key};
use lango_store::SqliteStore;
use lango_text::sanitize::{one_line, strip_control_chars};
use lango_text::suggest;
use serde_json::{Value, json};

use super::memory::forget_output;
use super::{CommandContext, runtime, with_damage_warnings};
use crate::args::{GlobalArgs, KnowledgeCommand};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub fn run(global: &GlobalArgs, command: &KnowledgeCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let store = context.store.open()?;
    let output = runtime()?.block_on(async {
        match command {
            KnowledgeCommand::List {
                learnings: true, ..
            } => learnings(&store).await,
            KnowledgeCommand::List { category, .. } => list(&store, category.as_deref()).await,
            KnowledgeCommand::Show { key } => show(&store, key).await,
            KnowledgeCommand::History { key } => history(&store, key).await,
            KnowledgeCommand::Delete { keys } => delete(&store, keys).await,
        }
    })?;
    Ok(with_damage_warnings(output, &store))
}

pub fn store_error(error: StoreError) -> CliError {
    CliError::store(error.to_string())
}

async fn list(store: &SqliteStore, category: Option<&str>) -> Result<CommandOutput, CliError> {
    let category = category.map(parse_category).transpose()?;
    let mut entries = store
        .entries(&Principal::local())
        .await
        .map_err(store_error)?;
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

async fn learnings(store: &SqliteStore) -> Result<CommandOutput, CliError> {
    let learnings = store
        .learnings(&Principal::local())
        .await
        .map_err(store_error)?;
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

async fn load_versions(store: &SqliteStore, key: &str) -> Result<Vec<KnowledgeEntry>, CliError> {
    let key = normalize_key(key);
    let versions = store
        .history(&Principal::local(), &key)
        .await
        .map_err(store_error)?;
    if versions.is_empty() {
        return Err(unknown_key_error(store, &key).await);
    }
    Ok(versions)
}

async fn unknown_key_error(store: &SqliteStore, key: &str) -> CliError {
    let entries = store.entries(&Principal::local()).await.unwrap_or_default();
    let error = CliError::usage(format!("unknown key `{}`", strip_control_chars(key)));
    let hint = suggest::did_you_mean(key, entries.iter().map(|entry| entry.key.as_str()));
    error.with_hint(hint.unwrap_or_else(|| "`lango knowledge list` lists the keys".to_owned()))
}

async fn show(store: &SqliteStore, key: &str) -> Result<CommandOutput, CliError> {
    let versions = load_versions(store, key).await?;
    let newest = &versions[0];
    Ok(CommandOutput::new(format_entry(newest), json!(newest)))
}

async fn history(store: &SqliteStore, key: &str) -> Result<CommandOutput, CliError> {
    let versions = load_versions(store, key).await?;
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

async fn delete(store: &SqliteStore, keys: &[String]) -> Result<CommandOutput, CliError> {
    for key in keys {
        load_versions(store, key).await?;
    }
    let keys: Vec<String> = keys.iter().map(|key| normalize_key(key)).collect();
    let (principal, forgetter) = (Principal::local(), lango_app::open_forgetter(store.clone()));
    let forgotten = match forgetter
        .find_keys_to_forget(&principal, &keys)
        .await
        .map_err(store_error)?
    {
        ForgetSelection::Matched {
            to_forget: forgotten,
            ..
        } => forgetter
            .forget(&principal, &forgotten)
            .await
            .map_err(store_error)?,
        ForgetSelection::NoMatch | ForgetSelection::Ambiguous(_) => Vec::new(),
    };
    let is_version = |item: &&LearnedItem| matches!(item.id, LearnedItemId::Entry { .. });
    let versions = forgotten.iter().filter(is_version).count();
    let mut output = forget_output(&forgotten, &[]);
    output.json["deleted"] = json!(keys);
    output.json["versions"] = json!(versions);
    Ok(output)
}
