//! Outlines of pages.

use serde_json::json;

use crate::setup::{Fixture, TestServer, reference};

#[tokio::test]
async fn an_outline_shows_text_roles_names_values_and_states() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let outline = fixture
        .open(
            &server,
            r#"<title>Shop</title><h1>Fresh fruit</h1><p>Read <a href="/more">more</a> about apples.</p>
            <form><label>Name <input name=n value=Ann required></label>
            <label><input type=checkbox checked> News</label>
            <select aria-label=Size><option>small<option selected>large</select>
            <input type=password placeholder=Secret value=hunter2>
            <button disabled>Buy</button></form>
            <ul><li>one<li>two</ul><table><tr><th>Fruit<th>Price<tr><td>Apple<td>1</table>"#,
        )
        .await;
    for part in [
        "page: Shop\n",
        "# Fresh fruit\n",
        "Read [e1 link \"more\"] about apples.\n",
        "textbox \"Name\" = \"Ann\" required]",
        "checkbox \"News\" checked]",
        "combobox \"Size\" = \"large\"; options: small / large]",
        "textbox(password) \"Secret\" = \"•••••••\"]",
        "button \"Buy\" disabled]",
        "- one\n- two\n",
        "Fruit | Price\nApple | 1\n",
    ] {
        assert!(outline.contains(part), "{part} in {outline}");
    }
    assert!(!outline.contains("hunter2"), "{outline}");
}

#[tokio::test]
async fn hidden_text_is_not_in_it() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let html = r#"<body style="background:#fff"><p>visible</p>
        <p style="display:none">hide-1</p><p style="visibility:hidden">hide-2</p><p style="opacity:0">hide-3</p>
        <p style="position:absolute;left:-9999px">hide-4</p><p style="font-size:1px">hide-5</p>
        <p style="color:#fff">hide-6</p><p style="color:#fefefe;background:white">hide-7</p>
        <div style="width:1px;height:1px;overflow:hidden">hide-8</div><p style="text-indent:-9999px">hide-9</p>
        <div style="opacity:.2"><div style="opacity:.1">hide-10</div></div><template>hide-11</template>
        <noscript>hide-12</noscript><p style="color:transparent">hide-13</p><!-- hide-14 --></body>"#;
    let outline = fixture.open(&server, html).await;
    assert!(outline.contains("visible"), "{outline}");
    assert!(!outline.contains("hide-"), "{outline}");
    let article = fixture
        .call("browser_extract", json!({ "mode": "article" }))
        .await
        .unwrap();
    assert!(
        article.contains("visible") && !article.contains("hide-"),
        "{article}"
    );
}

#[tokio::test]
async fn frames_of_other_sites_and_shadow_roots_are_part_of_it() {
    let (server, other) = (TestServer::start().await, TestServer::start().await);
    let fixture = Fixture::new();
    other.page(
        "/pay",
        "<p>card form</p><input aria-label=Card><button onclick=\"document.querySelector('p').textContent='paid ' + document.querySelector('input').value\">Pay</button>",
    );
    // Another host is another site.
    let frame = format!("http://localhost:{}/pay", other.address.port());
    let html = format!(
        r#"<h1>Outer</h1><div id=host></div><div style="height:50px"></div><iframe src="{frame}" title=Payment width=400 height=200 style="border:7px solid"></iframe>
        <iframe srcdoc="<a href='/x'>inside</a>" height=60></iframe>
        <script>host.attachShadow({{mode:'open'}}).innerHTML='<button onclick="this.textContent=`shadow clicked`">Shadow</button>'</script>"#
    );
    fixture.open(&server, &html).await;
    let outline = fixture.page_text().await;
    for part in [
        "button \"Shadow\"",
        "card form",
        "textbox \"Card\"",
        "link \"inside\"",
    ] {
        assert!(outline.contains(part), "{part} in {outline}");
    }
    let shadow = reference(&outline, "\"Shadow\"");
    let changed = fixture
        .act(json!({ "action": "click", "ref": shadow }))
        .await
        .unwrap();
    assert!(changed.contains("shadow clicked"), "{changed}");
    let card = reference(&outline, "\"Card\"");
    fixture
        .act(json!({ "action": "type", "ref": card, "text": "4711" }))
        .await
        .unwrap();
    let pay = reference(&outline, "\"Pay\"");
    let changed = fixture
        .act(json!({ "action": "click", "ref": pay }))
        .await
        .unwrap();
    assert!(changed.contains("paid 4711"), "{changed}");
}

#[tokio::test]
async fn the_viewport_comes_first_and_says_what_is_below() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let rows: String = (0..400)
        .map(|n| format!("<p>row {n} <a href=/{n}>go {n}</a></p>"))
        .collect();
    let outline = fixture
        .open(
            &server,
            &format!("{rows}<div style='position:fixed;top:0'>fixed note</div>"),
        )
        .await;
    assert!(
        outline.contains("row 0 ") && !outline.contains("row 399"),
        "{outline}"
    );
    assert!(
        outline.contains("fixed note") && outline.contains("below"),
        "{outline}"
    );
    let changed = fixture
        .act(json!({ "action": "scroll", "text": "bottom" }))
        .await
        .unwrap();
    assert!(changed.contains("row 399"), "{changed}");
    let error = fixture
        .act(json!({ "action": "scroll", "text": "down" }))
        .await
        .unwrap_err();
    assert!(error.contains("end"), "{error}");
    let found = fixture
        .call("browser_observe", json!({ "query": "row 250" }))
        .await
        .unwrap();
    assert!(
        found.contains("row 250") && !found.contains("row 251"),
        "{found}"
    );
}

#[tokio::test]
async fn lone_surrogates_and_odd_pages_are_read() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let outline = fixture
        .open(
            &server,
            r#"<p id=p></p><script>p.textContent='a\ud83d b'; document.title='\ude00t'</script>"#,
        )
        .await;
    assert!(outline.contains('a') && outline.contains('b'), "{outline}");
    for html in ["", "plain text", "<svg></svg>", "<frameset></frameset>"] {
        let outline = fixture.open(&server, html).await;
        assert!(outline.starts_with("page: "), "{outline}");
    }
    let deep = "<div>".repeat(5_000) + "deep";
    assert!(
        fixture
            .open(&server, &deep)
            .await
            .contains("larger than what was read")
    );
}

#[tokio::test]
async fn content_is_extracted_in_other_forms() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    fixture
        .open(
            &server,
            r#"<title>T</title><article><h1>Story</h1><p>It was a long and rainy night in the harbour town, and all was quiet.</p></article>
            <a href="https://a.example/x">Example</a><table><tr><th>A<th>B<tr><td>1<td>2</table>
            <form action=/send method=post aria-label=Contact><input name=mail aria-label=Mail></form>"#,
        )
        .await;
    for (mode, part) in [
        ("article", "rainy night"),
        ("links", "\"Example\"] https://a.example/x"),
        ("table", "| A | B |\n|---|---|\n| 1 | 2 |"),
        ("form", "textbox \"Mail\""),
        ("summary", "# Story"),
    ] {
        let text = fixture
            .call("browser_extract", json!({ "mode": mode }))
            .await
            .unwrap();
        assert!(text.contains(part), "{mode}: {text}");
    }
    let picture = fixture
        .output("browser_screenshot", json!({ "refs": true }))
        .await
        .unwrap();
    assert_eq!(picture.content.attachments[0].media_type, "image/webp");
    assert!(picture.label.unwrap().is_untrusted());
    let whole = fixture
        .output(
            "browser_screenshot",
            json!({ "full_page": true, "width": 400 }),
        )
        .await
        .unwrap();
    assert!(whole.content.attachments[0].size > 100);
}

#[tokio::test]
async fn a_search_page_gives_results_twice_a_turn() {
    let server = TestServer::start().await;
    server.page(
        "/find",
        r#"<form role=search><input name=q></form><div class=result><h2><a href="https://a.example/">First hit</a></h2><p>About apples.</p></div>
        <div class=result><h2><a href="https://b.example/">Second hit</a></h2><p>About pears.</p></div>"#,
    );
    let settings = lango_browser::BrowserSettings {
        search_url: server.url("/find?q={query}"),
        ..Default::default()
    };
    let fixture = Fixture::with(lango_net::AddressPolicy::Anywhere, settings);
    for _ in 0..2 {
        let found = fixture
            .call("browser_search", json!({ "query": "apples & pears" }))
            .await
            .unwrap();
        assert!(
            found.contains("First hit") && found.contains("https://b.example/"),
            "{found}"
        );
        assert!(found.contains("About apples."), "{found}");
    }
    assert!(
        server.requests()[0].contains("/find?q=apples+%26+pears"),
        "{:?}",
        server.requests()
    );
    let error = fixture
        .call("browser_search", json!({ "query": "more" }))
        .await
        .unwrap_err();
    assert!(error.contains("two searches"), "{error}");
}

#[tokio::test]
async fn a_blank_viewport_shows_the_text_of_the_page() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let html = "<div style='height:3000px'></div><p>Far below</p><a href=/x>Next</a>";
    let outline = fixture.open(&server, html).await;
    assert!(
        outline.contains("[nothing is in view; the whole page:]\nFar below\n"),
        "{outline}"
    );
    assert!(outline.contains("link \"Next\"]"), "{outline}");
    let empty = fixture
        .open(&server, "<div style='height:3000px'></div>")
        .await;
    assert!(empty.contains("[the page shows no text"), "{empty}");
}

/// The page itself does not scroll, but a box in it.
#[tokio::test]
async fn controls_below_in_a_box_that_scrolls_are_counted() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let html = "<body style='margin:0'><div style='height:100vh;overflow:auto'><p>Menu</p>\
        <div style='height:3000px'></div><button>Order</button></div></body>";
    let outline = fixture.open(&server, html).await;
    assert!(outline.contains("… 1 controls below"), "{outline}");
    let args = json!({ "region": "page" });
    let page = fixture.call("browser_observe", args).await.unwrap();
    assert!(page.contains("button \"Order\""), "{page}");
}
