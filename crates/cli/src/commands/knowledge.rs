//! `lango knowledge …`: what the librarian keeps, to look at and to delete.

use std::fmt::Write as _;
use std::sync::Arc;

use lango_domain::event::Principal;
use lango_domain::knowledge::{Category, KnowledgeEntry, KnowledgeStore, Learning};
use lango_domain::session::StoreError;
use lango_domain::suggest;
use lango_domain::text::{one_line, strip_control_chars};
use lango_knowledge::forgetting::{Forgetting, Meant, Trace, TraceId};
use lango_knowledge::knowledge_base::{key_of, entry_line};
use lango_store::SqliteStore;
use serde_json::{Value, json};

use super::memory::forgotten;
use super::{CommandContext, naming_damage, runtime};
use crate::args::{Global, KnowledgeCommand};
use crate::output::{DIM, CliError, NAME, CommandOutput, styled};

pub fn run(global: &Global, command: &KnowledgeCommand) -> Result<CommandOutput, CliError> {
    let setting = CommandContext::read(global)?;
    let store = setting.stores.open()?;
    let output = runtime()?.block_on(async {
        match command {
            KnowledgeCommand::List { learnings: true, .. } => learnings(&store).await,
            KnowledgeCommand::List { category, .. } => list(&store, category.as_deref()).await,
            KnowledgeCommand::Show { key } => show(&store, key).await,
            KnowledgeCommand::History { key } => history(&store, key).await,
            KnowledgeCommand::Delete { keys } => delete(&store, keys).await,
        }
    })?;
    Ok(naming_damage(output, &store))
}

pub fn failed(error: StoreError) -> CliError {
    CliError::store(error.to_string())
}

async fn list(store: &SqliteStore, category: Option<&str>) -> Result<CommandOutput, CliError> {
    let category = category.map(named).transpose()?;
    let mut entries = store.entries(&Principal::local()).await.map_err(failed)?;
    entries.retain(|entry| category.is_none_or(|category| entry.category == category));
    let mut plain = entries.iter().map(|entry| strip_control_chars(&entry_line(entry)) + "\n").collect::<String>();
    if entries.is_empty() {
        plain.push_str("Nothing is known yet.\n");
    }
    Ok(CommandOutput::new(plain, json!({ "items": entries })))
}

fn named(category: &str) -> Result<Category, CliError> {
    Category::named(category).ok_or_else(|| {
        let names = Category::ALL.map(Category::as_str);
        let failure = CliError::usage(format!("there is no category `{category}`"));
        let known = format!("it is one of {}", names.join(", "));
        failure.with_hint(suggest::did_you_mean(category, names).unwrap_or(known))
    })
}

async fn learnings(store: &SqliteStore) -> Result<CommandOutput, CliError> {
    let learnings = store.learnings(&Principal::local()).await.map_err(failed)?;
    let mut plain = String::new();
    for learning in &learnings {
        let Learning { id, trigger, fix, helped, failed, .. } = learning;
        let share = (learning.confidence() * 100.0).round();
        let counted = styled(DIM, format!("{share} %, helped {helped} of {} times", helped + failed));
        let _ = writeln!(plain, "{id}  when {}: {}  {counted}", one_line(trigger), one_line(fix));
    }
    if learnings.is_empty() {
        plain.push_str("Nothing was learned yet.\n");
    }
    Ok(CommandOutput::new(plain, json!({ "items": learnings.iter().map(learned).collect::<Vec<_>>() })))
}

fn learned(learning: &Learning) -> Value {
    json!({
        "id": learning.id, "trigger": learning.trigger, "fix": learning.fix, "category": learning.category,
        "confidence": learning.confidence(), "helped": learning.helped, "failed": learning.failed,
        "source": learning.source, "at": learning.at,
    })
}

async fn versions(store: &SqliteStore, key: &str) -> Result<Vec<KnowledgeEntry>, CliError> {
    let key = key_of(key);
    let versions = store.history(&Principal::local(), &key).await.map_err(failed)?;
    if versions.is_empty() {
        return Err(unknown(store, &key).await);
    }
    Ok(versions)
}

async fn unknown(store: &SqliteStore, key: &str) -> CliError {
    let known = store.entries(&Principal::local()).await.unwrap_or_default();
    let failure = CliError::usage(format!("nothing is known under `{}`", strip_control_chars(key)));
    let hint = suggest::did_you_mean(key, known.iter().map(|entry| entry.key.as_str()));
    failure.with_hint(hint.unwrap_or_else(|| "`lango knowledge list` names the keys".to_owned()))
}

async fn show(store: &SqliteStore, key: &str) -> Result<CommandOutput, CliError> {
    let versions = versions(store, key).await?;
    let newest = &versions[0];
    Ok(CommandOutput::new(told(newest), json!(newest)))
}

async fn history(store: &SqliteStore, key: &str) -> Result<CommandOutput, CliError> {
    let versions = versions(store, key).await?;
    let plain = versions.iter().map(told).collect::<Vec<_>>().join("\n");
    Ok(CommandOutput::new(plain, json!({ "key": versions[0].key, "items": versions })))
}

/// One version, with when and where it was said.
fn told(entry: &KnowledgeEntry) -> String {
    let KnowledgeEntry { key, version, category, content, tags, source, at } = entry;
    let session = source
        .session
        .as_ref()
        .map_or("a deleted session".to_owned(), |session| format!("session {}", one_line(session.as_str())));
    let when = at.strftime("%Y-%m-%d %H:%M");
    let tags = if tags.is_empty() { String::new() } else { format!(", tags {}", tags.join(", ")) };
    let label = if source.label.is_plain() { String::new() } else { format!("; {}", source.label) };
    let about = format!(
        "version {version}, {category}{tags}; {when}, {session}, turn {}, by {}{label}",
        source.turn, source.by
    );
    format!("{} {}\n{}\n", styled(NAME, strip_control_chars(key)), styled(DIM, one_line(&about)), strip_control_chars(content))
}

async fn delete(store: &SqliteStore, keys: &[String]) -> Result<CommandOutput, CliError> {
    for key in keys {
        versions(store, key).await?;
    }
    let keys: Vec<String> = keys.iter().map(|key| key_of(key)).collect();
    let (of, forgetting) = (Principal::local(), Forgetting::new(Arc::new(store.clone())));
    let gone = match forgetting.meant_by_keys(&of, &keys).await.map_err(failed)? {
        Meant::These { gone, .. } => forgetting.forget(&of, &gone).await.map_err(failed)?,
        Meant::Nothing | Meant::Several(_) => Vec::new(),
    };
    let is_version = |trace: &&Trace| matches!(trace.id, TraceId::Entry { .. });
    let versions = gone.iter().filter(is_version).count();
    let mut output = forgotten(&gone, &[]);
    output.json["deleted"] = json!(keys);
    output.json["versions"] = json!(versions);
    Ok(output)
}
