//! Damaged and partly deleted bytes of attachments.

use std::path::Path;

use lango_domain::Content;
use lango_domain::blobs::BlobStore as _;
use lango_domain::content::Attachment;
use lango_domain::event::{EventBody, Principal};
use lango_domain::maintenance::StoreMaintenance as _;
use lango_domain::session::{SessionKeyRef, SessionStore as _};
use lango_store::SqliteStore;
use lango_testkit::conformance::new_event;
use rusqlite::Connection;

use crate::setup::{id, open};

fn bytes() -> Vec<u8> {
    (0..600_000_u32)
        .map(|number| (number % 251) as u8)
        .collect()
}

/// Attaches the same bytes to a session, and returns what the store reads of them.
async fn attach(store: &SqliteStore, session: &str) -> Option<Vec<u8>> {
    let attachment = Attachment::new(bytes(), "a.bin", None).unwrap();
    let blob = attachment.blob.clone();
    let mut content = Content::from("look");
    content.attach(attachment);
    let (session, principal) = (id(session), Principal::local());
    let key = SessionKeyRef {
        session: &session,
        principal: &principal,
    };
    let drafts = vec![
        new_event("t", EventBody::User(content)),
        new_event("t", EventBody::turn_done()),
    ];
    store.append(key, drafts).await.unwrap();
    let read = store.blob(key, &blob).await.unwrap();
    read.map(|bytes| bytes.to_vec())
}

fn damage(folder: &Path, sql: &str) {
    let connection = Connection::open(folder.join("data/lango.sqlite")).unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
}

/// B110: whatever happened to the stored bytes, the next event that brings them has them.
#[tokio::test]
async fn damaged_bytes_are_found_and_written_again() {
    for sql in [
        "DELETE FROM blob_chunks WHERE number = 1",
        "UPDATE blobs SET size = 1 << 62",
        "UPDATE blob_chunks SET bytes = zeroblob(9) WHERE number = 0",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        assert_eq!(attach(&store, "first").await, Some(bytes()));
        damage(folder.path(), sql);
        let damaged = store.find_damaged_rows().await.unwrap();
        assert!(
            damaged
                .iter()
                .any(|row| format!("{row:?}").contains("attachment")),
            "{sql}"
        );
        assert_eq!(attach(&store, "second").await, Some(bytes()), "{sql}");
    }
}

/// Bytes that changed are not what the event names.
#[tokio::test]
async fn changed_bytes_are_not_returned() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    assert_eq!(attach(&store, "first").await, Some(bytes()));
    let sql = "UPDATE blob_chunks SET bytes = zeroblob(length(bytes)) WHERE number = 0";
    damage(folder.path(), sql);
    let attachment = Attachment::new(bytes(), "a.bin", None).unwrap();
    let (session, principal) = (id("first"), Principal::local());
    let key = SessionKeyRef {
        session: &session,
        principal: &principal,
    };
    assert_eq!(store.blob(key, &attachment.blob).await.unwrap(), None);
}
