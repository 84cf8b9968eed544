//! `lango inbox …`: messages from jobs, tasks and workflows.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use jiff::Timestamp;
use lango_app::capability::automation::time_text::relative_time;
use lango_domain::Stores;
use lango_domain::automation::{InboxEntry, InboxId, InboxSelection};
use lango_domain::event::Principal;
use lango_text::sanitize::{one_line, strip_control_chars, truncated_line};
use serde_json::{Value, json};

use super::automation::{AutomationView, items_json};
use super::{runtime, with_damage_warnings};
use crate::args::{GlobalArgs, InboxCommand};
use crate::output::{CliError, CommandOutput, DIM, NAME, print_stderr, styled};

/// The most messages that are read at once.
const MAX_ENTRIES: usize = 1_000;
/// The messages that a chat announces.
const ANNOUNCED_ENTRIES: usize = 5;
/// The interval at which an open chat looks for messages.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

pub fn run(global: &GlobalArgs, command: &InboxCommand) -> Result<CommandOutput, CliError> {
    let view = AutomationView::load(global)?;
    let output = runtime()?.block_on(async {
        match command {
            InboxCommand::List { all } => list(&view, *all).await,
            InboxCommand::Read { id, all } => read(&view, id.as_deref(), *all).await,
            InboxCommand::Clear { all } => clear(&view, *all).await,
        }
    })?;
    Ok(with_damage_warnings(output, &view.stores))
}

async fn list(view: &AutomationView, all: bool) -> Result<CommandOutput, CliError> {
    let selection = match all {
        true => InboxSelection::All,
        false => InboxSelection::Unread,
    };
    let entries = entries(view, selection).await?;
    let mut plain = String::new();
    for entry in &entries {
        let mark = if entry.is_read { " " } else { "*" };
        let id = styled(NAME, entry.id);
        let at = styled(DIM, view.times.both(entry.at));
        let _ = writeln!(plain, "{mark} {id}  {}  {at}", headline(entry, 200));
        let text = truncated_line(&entry.text, 160);
        if !text.is_empty() && text != one_line(&entry.title) {
            let _ = writeln!(plain, "    {text}");
        }
    }
    if entries.is_empty() {
        plain.push_str(match all {
            true => "The inbox is empty.\n",
            false => "There are no unread messages.\n",
        });
    }
    let items = entries.iter().map(entry_json).collect();
    Ok(CommandOutput::new(plain, items_json(items)))
}

/// Returns entries, newest first.
async fn entries(
    view: &AutomationView,
    selection: InboxSelection,
) -> Result<Vec<InboxEntry>, CliError> {
    let store = view.store();
    Ok(store.inbox(&view.principal, selection, MAX_ENTRIES).await?)
}

fn entry_json(entry: &InboxEntry) -> Value {
    json!({
        "id": entry.id,
        "at": entry.at,
        "from": entry.from,
        "title": entry.title,
        "text": entry.text,
        "session": entry.session,
        "read": entry.is_read,
    })
}

/// Returns the sender and the title on one line.
fn headline(entry: &InboxEntry, max_chars: usize) -> String {
    let (from, title) = (one_line(&entry.from), one_line(&entry.title));
    let line = match title.starts_with(&from) || from.is_empty() {
        true => title,
        false => format!("{from}: {title}"),
    };
    truncated_line(&line, max_chars)
}

async fn read(
    view: &AutomationView,
    id: Option<&str>,
    all: bool,
) -> Result<CommandOutput, CliError> {
    let mut shown = match id {
        Some(id) => vec![find_entry(view, id).await?],
        None => entries(view, InboxSelection::Unread).await?,
    };
    // The oldest first, as they were written.
    shown.reverse();
    let unread = shown.len();
    if id.is_none() && !all {
        shown.truncate(1);
    }
    let ids: Vec<InboxId> = shown.iter().map(|entry| entry.id).collect();
    if !ids.is_empty() {
        let selection = InboxSelection::Entries(ids);
        view.store().mark_read(&view.principal, selection).await?;
    }
    let mut texts: Vec<String> = shown.iter().map(|entry| full_text(view, entry)).collect();
    match unread - shown.len() {
        _ if unread == 0 => texts.push("There are no unread messages.\n".to_owned()),
        0 => {}
        1 => texts.push(styled(DIM, "1 more message is unread.\n")),
        more => texts.push(styled(DIM, format!("{more} more messages are unread.\n"))),
    }
    let items = shown.iter().map(|entry| {
        let mut json = entry_json(entry);
        json["read"] = true.into();
        json
    });
    Ok(CommandOutput::new(
        texts.join("\n"),
        items_json(items.collect()),
    ))
}

async fn find_entry(view: &AutomationView, id: &str) -> Result<InboxEntry, CliError> {
    let shown = truncated_line(id, 80);
    let number: InboxId = id.parse().map_err(|_| {
        CliError::usage(format!("`{shown}` is not the number of a message"))
            .with_hint("`lango inbox list --all` lists the messages")
    })?;
    let found = entries(view, InboxSelection::Entries(vec![number])).await?;
    found.into_iter().next().ok_or_else(|| {
        CliError::usage(format!("there is no message {shown}"))
            .with_hint("`lango inbox list --all` lists the messages")
    })
}

fn full_text(view: &AutomationView, entry: &InboxEntry) -> String {
    let mut text = format!(
        "{}  {}\n",
        styled(NAME, headline(entry, 500)),
        styled(DIM, view.times.both(entry.at))
    );
    let body = strip_control_chars(&entry.text);
    if !body.trim().is_empty() {
        let _ = writeln!(text, "{}", body.trim_end());
    }
    if let Some(session) = &entry.session {
        let line = format!(
            "`lango session show {}` shows the work",
            one_line(session.as_str())
        );
        let _ = writeln!(text, "{}", styled(DIM, line));
    }
    text
}

async fn clear(view: &AutomationView, all: bool) -> Result<CommandOutput, CliError> {
    let selection = match all {
        true => InboxSelection::All,
        false => InboxSelection::Read,
    };
    let cleared = view.store().clear_inbox(&view.principal, selection).await?;
    let plain = match (cleared, all) {
        (0, true) => "The inbox is empty.\n".to_owned(),
        (0, false) => {
            "There are no messages that were read. `--all` deletes unread ones too.\n".to_owned()
        }
        (1, _) => "Deleted 1 message.\n".to_owned(),
        (count, _) => format!("Deleted {count} messages.\n"),
    };
    Ok(CommandOutput::new(plain, json!({ "cleared": cleared })))
}

/// Announces unread messages to a person at a terminal. Stdout holds only results, so it is stderr.
pub async fn announce_unread(stores: &Stores, json: bool) {
    let is_terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    if json || !is_terminal {
        return;
    }
    let (principal, limit) = (Principal::local(), ANNOUNCED_ENTRIES + 1);
    let unread = stores
        .automation
        .inbox(&principal, InboxSelection::Unread, limit);
    // A store that cannot be read is reported where it matters more.
    let Ok(entries) = unread.await else { return };
    for line in announcement(&entries, Timestamp::now()) {
        print_stderr(&line);
    }
}

/// Prints messages as they arrive, each as a line with its end. Never returns.
pub async fn watch_inbox(stores: &Stores, mut print: impl FnMut(String)) {
    let principal = Principal::local();
    let newest = async || {
        let entries =
            stores
                .automation
                .inbox(&principal, InboxSelection::Unread, ANNOUNCED_ENTRIES);
        entries.await.unwrap_or_default()
    };
    let mut seen = newest().await.first().map(|entry| entry.id);
    loop {
        tokio::time::sleep(WATCH_INTERVAL).await;
        let entries = newest().await;
        let new: Vec<&InboxEntry> = entries
            .iter()
            .take_while(|entry| seen.is_none_or(|seen| entry.id > seen))
            .collect();
        for entry in new.iter().rev() {
            let name = styled(NAME, "inbox:");
            print(format!("{name} {}\n", headline(entry, 100)));
        }
        seen = entries.first().map(|entry| entry.id).max(seen);
    }
}

/// Returns one line per message, and a last one that says how to see the others.
fn announcement(entries: &[InboxEntry], now: Timestamp) -> Vec<String> {
    if entries.is_empty() {
        return Vec::new();
    }
    let line = |entry: &InboxEntry| {
        let at = styled(DIM, relative_time(entry.at, now));
        format!("{} {}  {at}", styled(NAME, "inbox:"), headline(entry, 100))
    };
    let mut lines: Vec<String> = entries.iter().take(ANNOUNCED_ENTRIES).map(line).collect();
    let more = match entries.len() > ANNOUNCED_ENTRIES {
        true => "There are more messages; `lango inbox list` shows all.",
        false => "`lango inbox list` shows all.",
    };
    lines.push(styled(DIM, more));
    lines
}

#[cfg(test)]
mod tests {
    use lango_domain::Label;

    use super::*;

    fn entry(number: u64, title: &str) -> InboxEntry {
        InboxEntry {
            id: InboxId::new(number),
            at: "2026-11-18T08:00:00Z".parse().unwrap(),
            principal: Principal::local(),
            from: "disk".to_owned(),
            title: title.to_owned(),
            text: String::new(),
            session: None,
            is_read: false,
            label: Label::default(),
        }
    }

    #[test]
    fn at_most_five_messages_are_announced_without_control_characters() {
        let now = "2026-11-18T08:05:00Z".parse().unwrap();
        assert!(announcement(&[], now).is_empty());
        let one = announcement(&[entry(1, "full\u{1b}[2J\nnow")], now);
        assert_eq!(one.len(), 2);
        assert!(
            one[0].contains("disk: full[2J now") && one[0].contains("5 min ago"),
            "{one:?}"
        );
        let many: Vec<InboxEntry> = (1..=6).map(|number| entry(number, "full")).collect();
        let lines = announcement(&many, now);
        assert_eq!(lines.len(), ANNOUNCED_ENTRIES + 1);
        assert!(lines[5].contains("more messages"));
    }
}
