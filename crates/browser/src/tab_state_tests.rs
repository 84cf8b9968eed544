use super::*;

fn event(session: Option<&str>, method: &str, params: Value) -> CdpEvent {
    CdpEvent {
        session: session.map(Into::into),
        method: method.to_owned(),
        params,
    }
}

fn attach(
    registry: &mut TabRegistry,
    session: &str,
    target: &str,
    kind: &str,
) -> Vec<EventReaction> {
    let info = json!({ "targetId": target, "type": kind, "browserContextId": "c", "openerId": "" });
    let parent = (kind == "iframe").then_some("s1");
    registry.apply(&event(
        parent,
        "Target.attachedToTarget",
        json!({ "sessionId": session, "targetInfo": info }),
    ))
}

fn navigate(registry: &mut TabRegistry, session: &str, frame: &str, document: &str) {
    let frame = json!({ "id": frame, "loaderId": document, "url": "http://a.example/" });
    let params = json!({ "frame": frame });
    registry.apply(&event(Some(session), "Page.frameNavigated", params));
}

#[test]
fn every_target_runs_after_its_set_up() {
    let mut registry = TabRegistry::default();
    for (session, target, kind) in [
        ("s1", "t1", "page"),
        ("s2", "f2", "iframe"),
        ("s3", "w", "worker"),
    ] {
        let reactions = attach(&mut registry, session, target, kind);
        let last = reactions.last().unwrap();
        assert_eq!(last.method, "Runtime.runIfWaitingForDebugger");
        assert_eq!(last.session.as_deref(), Some(session));
    }
    assert_eq!(&*registry.tab("t1").unwrap().frames["f2"].session, "s2");
}

/// B140: a navigation gives a frame another document, so references of the old one do not apply.
#[test]
fn a_navigation_changes_the_document_and_drops_child_frames() {
    let mut registry = TabRegistry::default();
    attach(&mut registry, "s1", "t1", "page");
    navigate(&mut registry, "s1", "t1", "d1");
    let child = json!({ "frameId": "f2", "parentFrameId": "t1" });
    registry.apply(&event(Some("s1"), "Page.frameAttached", child));
    registry
        .tab_mut("t1")
        .unwrap()
        .frames
        .get_mut("t1")
        .unwrap()
        .world = Some(5);
    navigate(&mut registry, "s1", "t1", "d2");
    let tab = registry.tab("t1").unwrap();
    let frame = tab.main_frame().unwrap();
    assert_eq!((&*frame.document, frame.world), ("d2", None));
    assert!(!tab.frames.contains_key("f2") && !frame.is_ready());
}

#[test]
fn alerts_are_answered_and_other_dialogs_wait() {
    let mut registry = TabRegistry::default();
    attach(&mut registry, "s1", "t1", "page");
    let open = |kind: &str| {
        let params = json!({ "type": kind, "message": "sure?" });
        event(Some("s1"), "Page.javascriptDialogOpening", params)
    };
    assert_eq!(
        registry.apply(&open("alert"))[0].method,
        "Page.handleJavaScriptDialog"
    );
    assert!(registry.apply(&open("confirm")).is_empty());
    let tab = registry.tab("t1").unwrap();
    assert_eq!(tab.dialog.as_ref().unwrap().kind, "confirm");
    assert_eq!(tab.notices, ["the page showed an alert: \"sure?\""]);
    registry.apply(&event(Some("s1"), "Page.javascriptDialogClosed", json!({})));
    assert!(registry.tab("t1").unwrap().dialog.is_none());
}

#[test]
fn too_many_tabs_are_closed() {
    let mut registry = TabRegistry::default();
    registry.add_context("c");
    for n in 0..MAX_TABS {
        attach(&mut registry, &format!("s{n}"), &format!("t{n}"), "page");
    }
    let reactions = attach(&mut registry, "more", "t-more", "page");
    assert_eq!(reactions[0].method, "Target.closeTarget");
    assert_eq!(registry.tabs_of("c").len(), MAX_TABS);
}
