//! Tests of the SQLite store: conformance, and failures of its file.

#[cfg(test)]
mod access_tokens;
#[cfg(test)]
mod blobs;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod knowledge;
#[cfg(test)]
mod maintenance;
#[cfg(test)]
mod processes;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod writer_thread;

#[cfg(test)]
mod setup {
    use std::path::Path;

    use lango_domain::event::{Principal, SessionId};
    use lango_domain::session::{SessionKeyRef, SessionStore};
    use lango_store::{SqliteStore, StoreLocation};
    use lango_testkit::conformance::{answer, new_event, user_request};

    pub fn open(folder: &Path) -> SqliteStore {
        SqliteStore::open(StoreLocation::File(folder.join("data/lango.sqlite"))).unwrap()
    }

    pub fn id(name: &str) -> SessionId {
        SessionId::new(name)
    }

    /// Appends a complete turn.
    pub async fn append_turn(store: &SqliteStore, session: &str, turn: &str, text: &str) {
        let drafts = vec![
            new_event(turn, user_request(text)),
            new_event(turn, answer("as you like")),
            new_event(turn, lango_domain::event::EventBody::turn_done()),
        ];
        let key = SessionKeyRef {
            session: &id(session),
            principal: &Principal::local(),
        };
        store.append(key, drafts).await.unwrap();
    }
}
