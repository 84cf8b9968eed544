use super::*;

const LIMITS: HtmlLimits = HtmlLimits {
    nodes: 200_000,
    output_bytes: 512 * 1024,
};

fn to_markdown(html: &str) -> String {
    ReadablePage::from_html(
        html,
        Some(&Url::parse("https://example.com/a/b").unwrap()),
        LIMITS,
    )
    .markdown()
}

#[test]
fn converts_a_page_to_markdown() {
    for (html, expected) in [
        ("<title> A\nB </title><p>x", "# A B\n\nx"),
        ("<title>A</title><h1>A</h1><p>x", "# A\n\nx"),
        ("<p>a<p>b <b>c</b>, d<br>e", "a\n\nb c, d\ne"),
        ("<h2><div>Head</div></h2>text", "## Head\n\ntext"),
        ("<h2></h2><p>x", "x"),
        ("<ul><li>a<li><p>b</p><li></ul><p>c", "- a\n- b\n\nc"),
        (
            "<ol start=3><li>a<li>b<ul><li>c</ul></ol>",
            "3. a\n4. b\n  - c",
        ),
        (
            "see <a href='../x y?z=1&amp;w'>the <i>link</i></a>.",
            "see [the link](https://example.com/x%20y?z=1&w).",
        ),
        (
            "<a href='#top'>up</a> <a href='javascript:x()'>js</a> <a href='/'></a>end",
            "up js end",
        ),
        (
            "<a href=/c><h3>Card</h3></a>",
            "### [Card](https://example.com/c)",
        ),
        (
            "<a href=/c><div>Card</div><p>words</p></a>",
            "Card\n\nwords <https://example.com/c>",
        ),
        (
            "<ul><li><a href=/c><div>Card</div></a></ul>",
            "- [Card](https://example.com/c)",
        ),
        (
            "<base href='https://other.example/z/'><a href=c>x</a>",
            "[x](https://other.example/z/c)",
        ),
        ("use <code>a  b</code> now", "use `a b` now"),
        (
            "<pre><code class='hl language-rust'>fn a() {\n    b\n\n\n}\n</code></pre>after",
            "```rust\nfn a() {\n    b\n\n\n}\n```\n\nafter",
        ),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc"),
        (
            "<table><thead><tr><th>a<th>b</thead><tr><td>1|2<td><p>3</p> 4</td></tr><tr><td></td><td>5</table>x",
            "| a | b |\n| --- | --- |\n| 1\\|2 | 3 4 |\n| | 5 |\n\nx",
        ),
        (
            "<table><tr><td><h1>T</h1><td><ul><li>x</ul></table>",
            "# T\n\n- x",
        ),
        (
            "<img src=x alt=' a cat '> and <img src=y>",
            "[image: a cat] and",
        ),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("x\u{1b}[31m\u{202e}y", "x[31my"),
        ("", ""),
    ] {
        assert_eq!(to_markdown(html), expected, "{html}");
    }
}

#[test]
fn removes_clutter() {
    let words = "These are the words of the page. ".repeat(20);
    let words = words.trim();
    for html in [
        format!("<nav>menu</nav><main><p>{words}</p></main><footer>imprint</footer>"),
        format!(
            "<header>Logo</header><div class='Ad-slot'>buy</div><p>{words}</p><aside>more</aside>"
        ),
        format!(
            "<div role=navigation>menu</div><article>{words}<form>subscribe</form></article><p>other</p>"
        ),
        format!(
            "<body class='has-sidebar'><div id=sidebar>x</div>{words}<script>x</script><style>y</style></body>"
        ),
        format!(
            "<p hidden>x</p><p aria-hidden=true>x</p><p style='DISPLAY : none'>x</p>{words}<noscript>x</noscript>"
        ),
        format!(
            "<form id=aspnet><div>{words}</div></form><select><option>x</select><svg><text>x</text></svg>"
        ),
    ] {
        assert_eq!(to_markdown(&html), words, "{html}");
    }
}

#[test]
fn keeps_all_of_several_articles() {
    let articles = "<article><p>one two three</p></article>".repeat(3);
    assert_eq!(to_markdown(&articles).matches("one").count(), 3);
}

#[test]
fn bounds_the_output_of_hostile_pages() {
    let deep = |tag: &str| format!("{}x", format!("<{tag}>").repeat(50_000));
    for html in [
        deep("div"),
        deep("ul><li"),
        deep("blockquote"),
        deep("table><tr><td"),
        deep("a href=/x"),
        deep("pre"),
        deep("p"),
        "<".repeat(2_000_000),
        "&".repeat(1_000_000),
        format!("<a {}>x", "b ".repeat(500_000)),
        format!("<p class='{}'>x", "ad ".repeat(500_000)),
        format!(
            "<base href='https://h.example/{}'>{}",
            "y".repeat(2_000),
            "<a href=z>x</a> ".repeat(60_000)
        ),
    ] {
        assert!(to_markdown(&html).len() <= 2 * LIMITS.output_bytes);
    }
}

proptest::proptest! {
    #[test]
    fn never_panics(html in "(<(/?)(p|ul|ol|li|table|tr|td|a href=x|pre|code|h2|blockquote|main|br|img alt=y|div)>|[ a|`\n]|&lt;){0,60}") {
        to_markdown(&html);
    }
}
