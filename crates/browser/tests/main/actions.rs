//! Actions on elements.

use lango_domain::Safety;
use serde_json::json;

use crate::setup::{Fixture, TestServer, reference};

/// B140: the page inserts a button before the one that a reference was given for.
#[tokio::test]
async fn a_reference_keeps_its_element() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let html = r#"<button>Alpha</button><button>Beta</button><button>Gamma</button><p id=log>none</p>
        <script>document.onclick = e => { if (e.target.tagName === 'BUTTON') log.textContent = 'clicked ' + e.target.textContent }</script>"#;
    let outline = fixture.open(&server, html).await;
    let (alpha, beta) = (
        reference(&outline, "\"Alpha\""),
        reference(&outline, "\"Beta\""),
    );
    fixture
        .act(json!({ "action": "click", "ref": alpha }))
        .await
        .unwrap();
    let page = fixture.page_text().await;
    assert_eq!(reference(&page, "\"Beta\""), beta, "{page}");
    let changed = fixture
        .act(json!({ "action": "click", "ref": beta }))
        .await
        .unwrap();
    assert!(changed.contains("+ clicked Beta"), "{changed}");
    assert!(
        !changed.contains("button \"Alpha\""),
        "only changes: {changed}"
    );
}

/// B140: elements that are gone, replaced, covered, disabled or in another document are errors that say
/// what is there now.
#[tokio::test]
async fn a_reference_never_acts_on_another_element() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let html = r#"<button id=a onclick="log.textContent='old'">Save</button><p id=log>none</p><div id=room></div>
        <button onclick="a.outerHTML='<button onclick=&quot;log.textContent=`new`&quot;>Save</button>'">Replace</button>
        <button onclick="room.innerHTML='<div role=dialog style=&quot;position:fixed;inset:0;background:#eee&quot;>Cookies?</div>'">Cover</button>
        <button disabled>Off</button>"#;
    let outline = fixture.open(&server, html).await;
    let find = |name: &str| reference(&outline, &format!("\"{name}\""));
    let click = |element: String| fixture.act(json!({ "action": "click", "ref": element }));
    let error = click(find("Off")).await.unwrap_err();
    assert!(error.contains("is disabled"), "{error}");
    click(find("Replace")).await.unwrap();
    let error = click(find("Save")).await.unwrap_err();
    assert!(
        error.contains("no longer on the page; now there is [e"),
        "{error}"
    );
    assert!(fixture.page_text().await.contains("none"));
    let now = reference(error.split("now there is").nth(1).unwrap(), "\"Save\"");
    assert_ne!(now, find("Save"));
    click(find("Cover")).await.unwrap();
    let error = click(now).await.unwrap_err();
    assert!(
        error.contains("covered by a dialog \"Cookies?\""),
        "{error}"
    );
    fixture.open(&server, "<button>Save</button>").await;
    let error = click(find("Save")).await.unwrap_err();
    assert!(error.contains("no longer open"), "{error}");
    let error = click("e9999".to_owned()).await.unwrap_err();
    assert!(error.contains("no reference e9999"), "{error}");
}

/// B140: the page moves another element under the mouse at the last moment.
#[tokio::test]
async fn an_element_that_slips_under_the_mouse_is_not_clicked() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let html = r#"<button id=a style="position:absolute;left:10px;top:10px">Cancel</button>
        <button id=b style="position:absolute;left:300px;top:300px" onclick="log.textContent='bought'">Buy</button><p id=log style="margin-top:400px">none</p>
        <script>a.onmousemove = () => { b.style.left = '10px'; b.style.top = '10px'; a.style.left = '300px' }</script>"#;
    let outline = fixture.open(&server, html).await;
    let cancel = reference(&outline, "\"Cancel\"");
    let _ = fixture
        .act(json!({ "action": "click", "ref": cancel }))
        .await;
    let page = fixture.page_text().await;
    assert!(!page.contains("bought"), "{page}");
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one form, step by step")]
async fn a_form_is_filled_and_submitted_with_one_dangerous_step() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    server.page("/send", "<h1>Thank you</h1>");
    let html = r#"<form action=/send method=post><label>Name <input name=name value=old></label>
        <label>Note <textarea name=note></textarea></label><label>Day <input type=date name=day></label>
        <select name=size aria-label=Size><option>S<option>L</select>
        <label><input type=checkbox name=news value=1>News</label><label><input type=radio name=c value=x>Red</label>
        <div contenteditable aria-label=Free>x</div><button>Place it</button></form>"#;
    let outline = fixture.open(&server, html).await;
    let find = |name: &str| reference(&outline, &format!("\"{name}\""));
    for step in [
        json!({ "action": "type", "ref": find("Name"), "text": "Ann Müller" }),
        json!({ "action": "type", "ref": "Note", "text": "two\nlines" }),
        json!({ "action": "type", "ref": find("Day"), "text": "2026-01-31" }),
        json!({ "action": "select", "ref": find("Size"), "text": "L" }),
        json!({ "action": "check", "ref": find("News") }),
        json!({ "action": "check", "ref": find("Red") }),
        json!({ "action": "type", "ref": find("Free"), "text": "hello" }),
    ] {
        let intent = fixture
            .intent("browser_action", step.clone())
            .await
            .unwrap();
        assert_eq!(intent.level, Safety::Moderate, "{step}");
        fixture.act(step).await.unwrap();
    }
    let submit = json!({ "action": "click", "ref": find("Place it") });
    let intent = fixture
        .intent("browser_action", submit.clone())
        .await
        .unwrap();
    assert_eq!(intent.level, Safety::Dangerous);
    for part in [
        server.url("/send").as_str(),
        "Name: Ann Müller",
        "Size: L",
        "Day: 2026-01-31",
    ] {
        assert!(intent.shows.contains(part), "{part} in {}", intent.shows);
    }
    let changed = fixture.act(submit).await.unwrap();
    assert!(changed.contains("# Thank you"), "{changed}");
    let sent = server.requests().last().unwrap().clone();
    for part in [
        "name=Ann+M%C3%BCller",
        "note=two%0D%0Alines",
        "day=2026-01-31",
        "size=L",
        "news=1",
        "c=x",
    ] {
        assert!(sent.contains(part), "{part} in {sent}");
    }
    let back = fixture.act(json!({ "action": "back" })).await.unwrap();
    assert!(back.contains("Place it"), "{back}");
    let forward = fixture.act(json!({ "action": "forward" })).await.unwrap();
    assert!(forward.contains("Thank you"), "{forward}");
    let error = fixture
        .act(json!({ "action": "forward" }))
        .await
        .unwrap_err();
    assert!(error.contains("no later page"), "{error}");
}

#[tokio::test]
async fn dialogs_wait_for_an_answer() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let html = r#"<button onclick="log.textContent = confirm('Sure?') ? 'yes' : 'no'">Ask</button>
        <button onclick="log.textContent = prompt('Name?')">Prompt</button>
        <button onclick="alert('boo'); log.textContent='after'">Alert</button><p id=log>none</p>"#;
    let outline = fixture.open(&server, html).await;
    let click =
        |name: &str| fixture.act(json!({ "action": "click", "ref": reference(&outline, name) }));
    let asked = click("\"Ask\"").await.unwrap();
    assert!(
        asked.contains("a confirm dialog is open: \"Sure?\""),
        "{asked}"
    );
    let error = fixture
        .call("browser_observe", json!({}))
        .await
        .unwrap_err();
    assert!(error.contains("dialog"), "{error}");
    let accept = json!({ "action": "dialog", "text": "accept" });
    let intent = fixture
        .intent("browser_action", accept.clone())
        .await
        .unwrap();
    assert!(intent.level == Safety::Dangerous && intent.shows.contains("Sure?"));
    let answered = fixture.act(accept).await.unwrap();
    assert!(answered.contains("+ yes"), "{answered}");
    click("\"Ask\"").await.unwrap();
    let answered = fixture
        .act(json!({ "action": "dialog", "text": "dismiss" }))
        .await
        .unwrap();
    assert!(answered.contains("+ no"), "{answered}");
    click("\"Prompt\"").await.unwrap();
    let answered = fixture
        .act(json!({ "action": "dialog", "text": "Ann" }))
        .await
        .unwrap();
    assert!(answered.contains("+ Ann"), "{answered}");
    let alerted = click("\"Alert\"").await.unwrap();
    assert!(
        alerted.contains("an alert: \"boo\"") && alerted.contains("after"),
        "{alerted}"
    );
    let error = fixture
        .act(json!({ "action": "dialog" }))
        .await
        .unwrap_err();
    assert!(error.contains("no dialog"), "{error}");
}

#[tokio::test]
async fn new_tabs_are_followed_and_can_be_left() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    server.page(
        "/other",
        "<h1>Other page</h1><button onclick='close()'>Close me</button>",
    );
    let outline = fixture
        .open(
            &server,
            "<h1>First</h1><a href=/other target=_blank rel=opener>Open</a>",
        )
        .await;
    let link = reference(&outline, "\"Open\"");
    let changed = fixture
        .act(json!({ "action": "click", "ref": link }))
        .await
        .unwrap();
    assert!(
        changed.contains("tab 2") && changed.contains("# Other page"),
        "{changed}"
    );
    let error = fixture
        .act(json!({ "action": "click", "ref": link }))
        .await
        .unwrap_err();
    assert!(error.contains("is in tab 1"), "{error}");
    let tabs = fixture
        .act(json!({ "action": "tab", "text": "1" }))
        .await
        .unwrap();
    assert!(
        tabs.contains("tab 1 (current)") && tabs.contains("# First"),
        "{tabs}"
    );
    fixture
        .act(json!({ "action": "tab", "text": "2" }))
        .await
        .unwrap();
    let closed = fixture
        .act(json!({ "action": "tab", "text": "close" }))
        .await
        .unwrap();
    assert!(
        closed.contains("# First") && !closed.contains("tab 2"),
        "{closed}"
    );
    let error = fixture
        .act(json!({ "action": "tab", "text": "7" }))
        .await
        .unwrap_err();
    assert!(error.contains("no tab 7"), "{error}");
}

#[tokio::test]
async fn files_are_uploaded_from_the_workspace_and_downloads_refused() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    std::fs::write(fixture.folder.path().join("a.txt"), "content of a").unwrap();
    server.page("/up", "<h1>Got it</h1>").page(
        "/file",
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=evil.sh\r\nContent-Length: 2\r\n\r\nhi",
    );
    let outline = fixture
        .open(&server, r#"<form action=/up method=post enctype=multipart/form-data><label>Paper <input type=file name=f></label><button>Go</button></form><a href=/file>Get</a>"#)
        .await;
    let upload =
        json!({ "action": "upload", "ref": reference(&outline, "\"Paper\""), "text": "a.txt" });
    let intent = fixture
        .intent("browser_action", upload.clone())
        .await
        .unwrap();
    assert_eq!(intent.level, Safety::Dangerous);
    let changed = fixture.act(upload).await.unwrap();
    assert!(changed.contains("a.txt"), "{changed}");
    let missing =
        json!({ "action": "upload", "ref": reference(&outline, "\"Paper\""), "text": "b.txt" });
    assert!(fixture.act(missing).await.is_err());
    let got = fixture
        .act(json!({ "action": "click", "ref": reference(&outline, "\"Get\"") }))
        .await
        .unwrap();
    assert!(
        got.contains(
            "offers the file evil.sh (application/octet-stream, 2 bytes, from http://127.0.0.1:"
        ),
        "{got}"
    );
    fixture
        .act(json!({ "action": "click", "ref": "Go" }))
        .await
        .unwrap();
    let sent = server.requests().last().unwrap().clone();
    assert!(sent.contains("content of a"), "{sent}");
}

#[tokio::test]
async fn keys_hover_drag_wait_and_coordinates_work() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let html = r#"<style>#menu{display:none} #top:hover #menu{display:block}</style>
        <div id=top tabindex=0>Menu<div id=menu><button>Inside</button></div></div>
        <input aria-label=Keys onkeydown="log.textContent = 'key ' + event.key + (event.ctrlKey ? ' ctrl' : '')"><p id=log>none</p>
        <canvas id=c width=100 height=100 onclick="log.textContent = `at ${event.offsetX},${event.offsetY}`"></canvas>
        <div id=box tabindex=0 onmousedown="event.preventDefault(); onmousemove = e => log.textContent = 'dragged'">Box</div><div tabindex=0>Goal</div>
        <button onclick="setTimeout(() => log.textContent = 'late text', 400)">Later</button>"#;
    let outline = fixture.open(&server, html).await;
    let find = |name: &str| reference(&outline, name);
    let hovered = fixture
        .act(json!({ "action": "hover", "ref": find("Menu") }))
        .await
        .unwrap();
    assert!(hovered.contains("button \"Inside\""), "{hovered}");
    let pressed = fixture
        .act(json!({ "action": "press", "ref": find("\"Keys\""), "key": "Control+k" }))
        .await
        .unwrap();
    assert!(pressed.contains("key k ctrl"), "{pressed}");
    let clicked = fixture
        .act(json!({ "action": "click", "ref": find("canvas"), "x": 20, "y": 30 }))
        .await
        .unwrap();
    assert!(clicked.contains("at 20,30"), "{clicked}");
    let dragged = fixture
        .act(json!({ "action": "drag", "ref": find("\"Box\""), "to_ref": find("\"Goal\"") }))
        .await
        .unwrap();
    assert!(dragged.contains("dragged"), "{dragged}");
    fixture
        .act(json!({ "action": "click", "ref": find("\"Later\"") }))
        .await
        .unwrap();
    fixture
        .act(json!({ "action": "wait", "text": "late text" }))
        .await
        .unwrap();
    let error = fixture
        .act(json!({ "action": "wait", "text": "never", "timeout": 1 }))
        .await
        .unwrap_err();
    assert!(error.contains("did not appear"), "{error}");
}

#[tokio::test]
async fn contexts_of_sessions_and_principals_are_isolated() {
    let (server, mut fixture) = (TestServer::start().await, Fixture::new());
    let html = "<script>document.cookie ||= 'id=' + location.search; document.title = document.cookie</script>";
    server.page("/c", html);
    assert!(
        fixture
            .navigate(&server.url("/c?first"))
            .await
            .unwrap()
            .contains("id=?first")
    );
    assert!(
        fixture
            .navigate(&server.url("/c?again"))
            .await
            .unwrap()
            .contains("id=?first")
    );
    fixture.context.session = lango_domain::event::SessionId::new("other");
    let error = fixture
        .call("browser_observe", json!({}))
        .await
        .unwrap_err();
    assert!(error.contains("no page is open"), "{error}");
    assert!(
        fixture
            .navigate(&server.url("/c?second"))
            .await
            .unwrap()
            .contains("id=?second")
    );
}

#[tokio::test]
async fn bad_arguments_are_ordinary_errors() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let error = fixture
        .act(json!({ "action": "click", "ref": "e1" }))
        .await
        .unwrap_err();
    assert!(error.contains("no page is open"), "{error}");
    fixture
        .open(
            &server,
            "<button>A</button><button>A</button><input aria-label=T>",
        )
        .await;
    for (args, part) in [
        (json!({ "action": "click" }), "needs a ref"),
        (
            json!({ "action": "click", "ref": "A" }),
            "2 controls are named so",
        ),
        (
            json!({ "action": "click", "ref": "Zebra" }),
            "no control is named",
        ),
        (
            json!({ "action": "click", "selector": "button" }),
            "matches 2 elements",
        ),
        (
            json!({ "action": "click", "selector": "[[" }),
            "not a CSS selector",
        ),
        (json!({ "action": "type", "ref": "T" }), "needs a text"),
        (
            json!({ "action": "select", "ref": "T", "text": "x" }),
            "not a list of options",
        ),
        (
            json!({ "action": "check", "ref": "T" }),
            "cannot be checked",
        ),
        (
            json!({ "action": "press", "key": "Hyper+Q" }),
            "unknown key",
        ),
        (
            json!({ "action": "scroll", "text": "sideways" }),
            "not a direction",
        ),
        (json!({ "action": "fly" }), "unknown variant"),
    ] {
        let error = fixture.act(args.clone()).await.unwrap_err();
        assert!(error.contains(part), "{args}: {error}");
    }
    let eval = json!({ "action": "eval", "text": "1" });
    let error = fixture.intent("browser_action", eval).await.unwrap_err();
    assert!(error.contains("eval is off"), "{error}");
}

/// Boxes and icons without text are found by their places, paths are dragged, text is selected, and several
/// keys are pressed in one call.
#[tokio::test]
async fn elements_paths_text_and_several_keys_work() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let html = r#"<p id=text>one two three</p><input aria-label=Keys><p id=log>none</p>
        <div id=pad style="width:200px;height:100px;background:#00ff00" onmousedown="n = 0; event.preventDefault()" onmousemove="n++" onmouseup="log.textContent = `path ${n} to ${event.offsetX},${event.offsetY}`"></div>
        <div id=card style="width:300px;height:60px"><button>Pay</button></div><script>var n = 0</script>"#;
    fixture.open(&server, html).await;
    let observe = json!({ "region": "elements" });
    let elements = fixture.call("browser_observe", observe).await.unwrap();
    assert!(elements.contains("#00ff00"), "{elements}");
    let pad = reference(&elements, "#00ff00");
    let path = json!({ "action": "drag", "ref": pad, "path": "10,10 50,10 50,60 90,70" });
    let dragged = fixture.act(path).await.unwrap();
    assert!(dragged.contains("to 90,70"), "{dragged}");
    for bad in ["10,10", "a,b c,d", ""] {
        let args = json!({ "action": "drag", "ref": pad, "path": bad });
        let error = fixture.act(args).await.unwrap_err();
        assert!(error.contains("is not a path"), "{error}");
    }
    let select = json!({ "action": "select_text", "text": "two" });
    fixture.act(select).await.unwrap();
    let missing = json!({ "action": "select_text", "text": "seven" });
    let error = fixture.act(missing).await.unwrap_err();
    assert!(error.contains("is not on the page"), "{error}");
    let keys = json!({ "action": "press", "ref": "Keys", "key": "a b c" });
    let pressed = fixture.act(keys).await.unwrap();
    assert!(pressed.contains("= \"abc\""), "{pressed}");
    let error = json!({ "action": "press", "ref": "Keys", "key": "Tab Enter" });
    let error = fixture.act(error).await.unwrap_err();
    assert!(error.contains("must be the last key"), "{error}");
}
