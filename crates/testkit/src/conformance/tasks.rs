//! The conformance suite for A2A tasks.

use lango_domain::Stores;
use lango_domain::event::{Principal, SessionId, TurnId};
use lango_domain::tasks::{NewTask, PushConfigRow, TaskCreation, TaskQuery, TaskRow, TaskStore};

use super::{append_turn, key, ok, seconds};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`TaskStore`].
pub async fn check(stores: &Stores) {
    let store = &*stores.tasks;
    tasks_round_trip(store).await;
    a_repeated_message_creates_no_task(store).await;
    finished_tasks_make_room(store).await;
    queries_filter(store).await;
    queries_page(store).await;
    unfinished_tasks_are_open(store).await;
    push_configs_are_limited(store).await;
    tasks_belong_to_their_principal(store).await;
    tasks_go_with_their_session(stores).await;
}

fn row(principal: &str, id: &str, updated: i64) -> TaskRow {
    TaskRow {
        id: id.to_owned(),
        principal: Principal::new(principal),
        session: SessionId::new("s"),
        turn: None,
        state: "working".to_owned(),
        is_terminal: false,
        created: seconds(updated),
        updated: seconds(updated),
        body: format!("{{\"id\":\"{id}\"}}"),
    }
}

fn finished(principal: &str, id: &str, updated: i64) -> TaskRow {
    TaskRow {
        state: "completed".to_owned(),
        is_terminal: true,
        ..row(principal, id, updated)
    }
}

/// Returns a task whose message has the same id as the task.
fn new_task(row: TaskRow) -> NewTask {
    NewTask {
        message: row.id.clone(),
        row,
        repeated_since: seconds(0),
        max_tasks: 100,
    }
}

async fn create(store: &dyn TaskStore, row: TaskRow) {
    let created = ok(store.create_task(new_task(row)).await);
    assert_eq!(created, TaskCreation::New);
}

fn query(principal: &str) -> TaskQuery {
    TaskQuery {
        principal: Principal::new(principal),
        session: None,
        state: None,
        changed_after: None,
        after: None,
        limit: 100,
    }
}

/// Returns the ids of the matching tasks, and their number without the cursor and the limit.
async fn find(store: &dyn TaskStore, query: TaskQuery) -> (Vec<String>, usize) {
    let (rows, count) = ok(store.tasks(query).await);
    (rows.into_iter().map(|row| row.id).collect(), count)
}

async fn tasks_round_trip(store: &dyn TaskStore) {
    let owner = Principal::new("round");
    assert_eq!(ok(store.task(&owner, "round").await), None);
    let created = row("round", "round", 1);
    create(store, created.clone()).await;
    assert_eq!(ok(store.task(&owner, "round").await), Some(created.clone()));
    let updated = TaskRow {
        turn: Some(TurnId::new("t1")),
        state: "completed".to_owned(),
        is_terminal: true,
        updated: seconds(9),
        body: "안녕 \0 🙂".to_owned(),
        ..created
    };
    ok(store.update_task(updated.clone()).await);
    assert_eq!(ok(store.task(&owner, "round").await), Some(updated.clone()));
    ok(store.delete_task(&owner, "round").await);
    ok(store.update_task(updated).await);
    assert_eq!(
        ok(store.task(&owner, "round").await),
        None,
        "an update does not bring a deleted task back"
    );
}

async fn a_repeated_message_creates_no_task(store: &dyn TaskStore) {
    let message = |principal: &str, id: &str, at: i64, since: i64| NewTask {
        message: "same message".to_owned(),
        repeated_since: seconds(since),
        ..new_task(row(principal, id, at))
    };
    let first = message("repeat", "repeat-1", 10, 0);
    assert_eq!(
        ok(store.create_task(first.clone()).await),
        TaskCreation::New
    );
    let again = ok(store
        .create_task(message("repeat", "repeat-2", 20, 10))
        .await);
    assert_eq!(again, TaskCreation::Repeated(Box::new(first.row)));
    assert_eq!(
        find(store, query("repeat")).await,
        (vec!["repeat-1".to_owned()], 1)
    );
    let later = ok(store
        .create_task(message("repeat", "repeat-3", 30, 11))
        .await);
    assert_eq!(later, TaskCreation::New, "the first message is too old");
    let other = ok(store.create_task(message("other", "repeat-4", 30, 0)).await);
    assert_eq!(other, TaskCreation::New, "another principal's message");
}

async fn finished_tasks_make_room(store: &dyn TaskStore) {
    let limited = |row: TaskRow| NewTask {
        max_tasks: 3,
        ..new_task(row)
    };
    create(store, row("room", "room-open", 1)).await;
    create(store, finished("room", "room-newer", 3)).await;
    create(store, finished("room", "room-older", 2)).await;
    let created = ok(store.create_task(limited(row("room", "room-4", 4))).await);
    assert_eq!(created, TaskCreation::New);
    let left = find(store, query("room")).await.0;
    assert_eq!(left, ["room-4", "room-newer", "room-open"]);
    let created = ok(store.create_task(limited(row("room", "room-5", 5))).await);
    assert_eq!(created, TaskCreation::New);
    let refused = ok(store.create_task(limited(row("room", "room-6", 6))).await);
    assert_eq!(refused, TaskCreation::TooMany);
    let left = find(store, query("room")).await.0;
    assert_eq!(left, ["room-5", "room-4", "room-open"]);
    let other = ok(store
        .create_task(limited(row("roommate", "room-7", 7)))
        .await);
    assert_eq!(other, TaskCreation::New, "the limit is per principal");
}

async fn queries_filter(store: &dyn TaskStore) {
    create(store, row("filter", "filter-1", 1)).await;
    create(store, finished("filter", "filter-2", 2)).await;
    let elsewhere = TaskRow {
        session: SessionId::new("elsewhere"),
        ..row("filter", "filter-3", 3)
    };
    create(store, elsewhere).await;
    let all = query("filter");
    let by_session = TaskQuery {
        session: Some(SessionId::new("s")),
        ..all.clone()
    };
    let by_state = TaskQuery {
        state: Some("working".to_owned()),
        ..all.clone()
    };
    let by_time = TaskQuery {
        changed_after: Some(seconds(2)),
        ..all.clone()
    };
    for (query, expected) in [
        (all, vec!["filter-3", "filter-2", "filter-1"]),
        (by_session, vec!["filter-2", "filter-1"]),
        (by_state, vec!["filter-3", "filter-1"]),
        (by_time, vec!["filter-3"]),
    ] {
        let (found, count) = find(store, query).await;
        assert_eq!(count, expected.len());
        assert_eq!(found, expected);
    }
}

/// Tasks that changed at the same time are on exactly one page too.
async fn queries_page(store: &dyn TaskStore) {
    for (id, updated) in [
        ("page-a", 1),
        ("page-b", 2),
        ("page-c", 2),
        ("page-d", 2),
        ("page-e", 3),
    ] {
        create(store, row("page", id, updated)).await;
    }
    let (mut after, mut found) = (None, Vec::new());
    loop {
        let page = TaskQuery {
            after: after.take(),
            limit: 2,
            ..query("page")
        };
        let (rows, count) = ok(store.tasks(page).await);
        assert_eq!(count, 5, "the number ignores the cursor and the limit");
        assert!(rows.len() <= 2);
        let Some(last) = rows.last() else { break };
        after = Some((last.updated, last.id.clone()));
        found.extend(rows);
    }
    assert!(found.is_sorted_by(|a, b| a.updated >= b.updated));
    let mut ids: Vec<&str> = found.iter().map(|row| row.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["page-a", "page-b", "page-c", "page-d", "page-e"]);
}

async fn unfinished_tasks_are_open(store: &dyn TaskStore) {
    create(store, row("open", "open-1", 1)).await;
    create(store, finished("open", "open-2", 1)).await;
    create(store, row("opener", "open-3", 1)).await;
    let owner = Principal::new("open");
    let hers = (owner.clone(), "open-1".to_owned());
    let open = ok(store.open_tasks(Some(&owner)).await);
    assert_eq!(open, std::slice::from_ref(&hers), "B74");
    let all = ok(store.open_tasks(None).await);
    let others = (Principal::new("opener"), "open-3".to_owned());
    assert!(all.contains(&hers) && all.contains(&others));
    assert!(all.iter().all(|(_, id)| id != "open-2"));
    ok(store.update_task(finished("open", "open-1", 2)).await);
    assert_eq!(ok(store.open_tasks(Some(&owner)).await), []);
}

async fn push_configs_are_limited(store: &dyn TaskStore) {
    let config = |id: &str, body: &str| PushConfigRow {
        id: id.to_owned(),
        body: body.to_owned(),
    };
    create(store, row("push", "push", 1)).await;
    create(store, row("push", "push-other", 1)).await;
    assert_eq!(ok(store.push_configs("push").await), []);
    for (id, body, expected) in [
        ("a", "1", true),
        ("b", "1", true),
        ("c", "1", false),
        ("b", "2", true),
    ] {
        let added = store.upsert_push_config("push", config(id, body), 2).await;
        assert_eq!(ok(added), expected, "{id}");
    }
    let mut configs = ok(store.push_configs("push").await);
    configs.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(configs, [config("a", "1"), config("b", "2")]);
    assert_eq!(ok(store.push_configs("push-other").await), []);
    ok(store.delete_push_config("push", "a").await);
    ok(store.delete_push_config("push", "a").await);
    assert_eq!(ok(store.push_configs("push").await), [config("b", "2")]);
    ok(store.delete_task(&Principal::new("push"), "push").await);
    assert_eq!(ok(store.push_configs("push").await), []);
}

/// B74
async fn tasks_belong_to_their_principal(store: &dyn TaskStore) {
    let hers = row("alice", "private", 1);
    create(store, hers.clone()).await;
    let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
    assert_eq!(ok(store.task(&bob, "private").await), None);
    assert_eq!(find(store, query("bob")).await, (Vec::new(), 0));
    ok(store.update_task(finished("bob", "private", 9)).await);
    ok(store.delete_task(&bob, "private").await);
    assert_eq!(ok(store.task(&alice, "private").await), Some(hers));
}

/// A task goes with the session of its own principal only.
async fn tasks_go_with_their_session(stores: &Stores) {
    let store = &*stores.tasks;
    let (deleted, kept, others) = (key("gone", "s"), key("gone", "kept"), key("stays", "s"));
    for key in [&deleted, &kept, &others] {
        append_turn(&*stores.sessions, key, "t", "hello").await;
    }
    create(store, row("gone", "gone-1", 1)).await;
    let elsewhere = TaskRow {
        session: kept.session.clone(),
        ..row("gone", "gone-2", 1)
    };
    create(store, elsewhere).await;
    create(store, row("stays", "gone-3", 1)).await;
    ok(stores
        .catalog
        .delete(&deleted.principal, &deleted.session)
        .await);
    assert_eq!(find(store, query("gone")).await.0, ["gone-2"]);
    assert_eq!(find(store, query("stays")).await.0, ["gone-3"]);
}
