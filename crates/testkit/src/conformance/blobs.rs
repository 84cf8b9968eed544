//! The conformance suite for the bytes of attachments.

use std::sync::Arc;

use lango_domain::blobs::{BlobStore, BlobTotals};
use lango_domain::content::{Attachment, BlobData, BlobId};
use lango_domain::event::{EventBody, SessionId};
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::session::{SessionKey, SessionStore};
use lango_domain::{Content, Stores};

use super::{append_at, key, new_event, ok, seconds};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`BlobStore`].
pub async fn check(stores: &Stores) {
    let (sessions, blobs) = (&*stores.sessions, &*stores.blobs);
    check_reading(sessions, blobs).await;
    bytes_go_with_their_last_event(stores).await;
    copies_keep_their_bytes(stores).await;
    a_name_alone_gives_no_access(stores).await;
    values_are_removed_from_text_files(stores).await;
}

/// B130
async fn values_are_removed_from_text_files(stores: &Stores) {
    let (sessions, blobs) = (&*stores.sessions, &*stores.blobs);
    let redactor = SecretRedactor::new([("A".to_owned(), "canary-7f3a9".to_owned())]);
    let key = key("ann", "text");
    let text = b"key=canary-7f3a9\n".to_vec();
    let Ok(attachment) = Attachment::new(text, "a.txt", Some("text/plain")) else {
        unreachable!("a valid attachment");
    };
    let (before, image) = (attachment.blob.clone(), file(&[0, 255, 10]));
    attach(sessions, &key, attachment).await;
    attach(sessions, &key, image.clone()).await;
    let changed = ok(sessions.redact(key.as_ref(), &redactor).await);
    assert_eq!(changed.len(), 1);
    let after = &changed[0].attachments()[0].blob;
    let read_after = read(blobs, &key, after).await;
    assert_eq!(
        read_after.as_deref(),
        Some(&b"key=[secret A: set, hidden]\n"[..])
    );
    assert_eq!(read(blobs, &key, &before).await, None);
    assert!(read(blobs, &key, &image.blob).await.is_some());
}

/// Runs the part of the suite that needs no catalog.
///
/// # Panics
/// If the store violates the contract of [`BlobStore`].
pub async fn check_reading(sessions: &dyn SessionStore, blobs: &dyn BlobStore) {
    bytes_come_back(sessions, blobs).await;
    equal_bytes_are_stored_once(sessions, blobs).await;
    bytes_belong_to_their_session(sessions, blobs).await;
}

fn file(bytes: &[u8]) -> Attachment {
    match Attachment::new(bytes.to_vec(), "a.bin", None) {
        Ok(file) => file,
        Err(error) => unreachable!("a valid attachment: {error}"),
    }
}

/// Returns the bytes of a file that is larger than what fits into one row.
fn large(byte: u8) -> Vec<u8> {
    (0..700_000_u32)
        .map(|number| (number / 251) as u8 ^ byte)
        .collect()
}

/// Appends a turn whose request has this attachment.
async fn attach(sessions: &dyn SessionStore, key: &SessionKey, attachment: Attachment) {
    let mut content = Content::from("look");
    content.attach(attachment);
    let events = ["t1", "t1"]
        .into_iter()
        .zip([EventBody::User(content), EventBody::turn_done()]);
    let events = events.map(|(turn, body)| new_event(turn, body)).collect();
    append_at(sessions, key, seconds(1), events).await;
}

async fn read(blobs: &dyn BlobStore, key: &SessionKey, blob: &BlobId) -> Option<Arc<[u8]>> {
    ok(blobs.blob(key.as_ref(), blob).await)
}

async fn bytes_come_back(sessions: &dyn SessionStore, blobs: &dyn BlobStore) {
    let (small, large) = (vec![0, 255, 10], large(1));
    for bytes in [small, large] {
        let (key, attachment) = (key("ann", "read"), file(&bytes));
        let blob = attachment.blob.clone();
        assert_eq!(read(blobs, &key, &blob).await, None);
        attach(sessions, &key, attachment).await;
        assert_eq!(read(blobs, &key, &blob).await.as_deref(), Some(&bytes[..]));
    }
    assert_eq!(
        read(blobs, &key("ann", "read"), &BlobId::of(b"x")).await,
        None
    );
}

async fn equal_bytes_are_stored_once(sessions: &dyn SessionStore, blobs: &dyn BlobStore) {
    let before = ok(blobs.blob_totals().await);
    for session in ["one", "two", "two"] {
        attach(sessions, &key("ann", session), file(&large(2))).await;
    }
    let after = BlobTotals {
        blobs: before.blobs + 1,
        bytes: before.bytes + 700_000,
    };
    assert_eq!(ok(blobs.blob_totals().await), after);
}

async fn bytes_belong_to_their_session(sessions: &dyn SessionStore, blobs: &dyn BlobStore) {
    let attachment = file(b"private");
    attach(sessions, &key("ann", "mine"), attachment.clone()).await;
    for other in [key("ann", "other"), key("bob", "mine")] {
        assert_eq!(read(blobs, &other, &attachment.blob).await, None);
    }
}

async fn bytes_go_with_their_last_event(stores: &Stores) {
    let (first, second) = (key("ann", "first"), key("ann", "second"));
    let attachment = file(&large(3));
    let before = ok(stores.blobs.blob_totals().await);
    for key in [&first, &second] {
        attach(&*stores.sessions, key, attachment.clone()).await;
    }
    ok(stores
        .catalog
        .delete(&first.principal, &first.session)
        .await);
    let kept = read(&*stores.blobs, &second, &attachment.blob).await;
    assert_eq!(kept.as_deref(), Some(&large(3)[..]));
    ok(stores
        .catalog
        .delete(&second.principal, &second.session)
        .await);
    assert_eq!(ok(stores.blobs.blob_totals().await), before);
}

async fn copies_keep_their_bytes(stores: &Stores) {
    let source = key("ann", "source");
    let attachment = file(b"copied");
    attach(&*stores.sessions, &source, attachment.clone()).await;
    let copy = SessionId::new("copy");
    let (principal, from) = (&source.principal, &source.session);
    ok(stores.catalog.fork(principal, from, u64::MAX, &copy).await);
    ok(stores.catalog.delete(principal, from).await);
    let bytes = read(&*stores.blobs, &key("ann", "copy"), &attachment.blob).await;
    assert_eq!(bytes.as_deref(), Some(&b"copied"[..]));
}

/// B74: an event that only names bytes of another principal does not get them.
async fn a_name_alone_gives_no_access(stores: &Stores) {
    let attachment = file(b"of ann");
    attach(&*stores.sessions, &key("ann", "hers"), attachment.clone()).await;
    let without_bytes = Attachment {
        data: BlobData::default(),
        ..attachment.clone()
    };
    let guess = key("bob", "guess");
    attach(&*stores.sessions, &guess, without_bytes).await;
    assert_eq!(read(&*stores.blobs, &guess, &attachment.blob).await, None);
}
