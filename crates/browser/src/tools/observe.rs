//! `browser_observe`: looks at the open page.

use std::sync::Arc;

use lango_domain::{Safety, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{find_element, page_output, session_of};
use crate::navigator::Navigator;
use crate::page::outline::{OUTLINE_TOKENS, OutlineRegion, PageOutline};

const DEFAULT_LIMIT: usize = 40;
const MAX_LIMIT: usize = 200;

#[derive(Deserialize, JsonSchema)]
struct ObserveArgs {
    /// Only lines that contain these words.
    query: Option<String>,
    /// viewport: what is visible (default). page: the whole page. A reference such as e12: that element.
    /// elements: each visible element as [ref kind "name" color left,top widthxheight], also boxes, icons and
    /// shapes without text.
    region: Option<String>,
    /// The number of lines to skip.
    offset: Option<usize>,
    #[schemars(description = "Most lines: 40 if left out, up to 200.")]
    limit: Option<usize>,
}

pub(super) fn tool(navigator: &Arc<Navigator>) -> Tool {
    let navigator = Arc::clone(navigator);
    let description = "Looks at the page that is open: an outline of its text and of its controls with their \
        references. Nothing is sent.";
    Tool::new(
        "browser_observe",
        description,
        Safety::Safe,
        move |context: ToolContext, args: ObserveArgs| {
            let navigator = Arc::clone(&navigator);
            async move { observe(&navigator, &context, args).await }
        },
    )
    .with_untrusted_output()
    .with_phrases([
        "(look at|observe|describe) [the] (open|current) page",
        "what is on [the] (open|current) page",
    ])
}

async fn observe(
    navigator: &Navigator,
    context: &ToolContext,
    args: ObserveArgs,
) -> Result<ToolOutput, ToolError> {
    let mut session = session_of(navigator, context).await;
    let page = session.page()?;
    page.check_usable()?;
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let region = args.region.as_deref().unwrap_or("viewport").trim();
    let mut outline = match region {
        "viewport" | "" if args.query.is_none() => session.look(&page).await?,
        "viewport" | "" | "page" => page.outline(OutlineRegion::Page).await?,
        "elements" => page.outline(OutlineRegion::Elements).await?,
        element => {
            let element = find_element(&page, element).await?;
            page.outline(OutlineRegion::Element(element)).await?
        }
    };
    if !matches!(region, "viewport" | "") || args.query.is_some() {
        (outline.pixels_above, outline.pixels_below) = (0, 0);
    }
    if let Some(query) = &args.query {
        filter_lines(&mut outline, query);
    }
    let text = outline.format(args.offset.unwrap_or_default(), limit, OUTLINE_TOKENS);
    Ok(page_output(&page, text))
}

/// Keeps the lines with all words of a query; if there is none, those with any.
fn filter_lines(outline: &mut PageOutline, query: &str) {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let matches = |line: &String, wanted: usize| {
        let line = line.to_lowercase();
        words
            .iter()
            .filter(|word| line.contains(word.as_str()))
            .count()
            >= wanted
    };
    let wanted = match outline.lines.iter().any(|line| matches(line, words.len())) {
        true => words.len(),
        false => 1,
    };
    outline.lines.retain(|line| matches(line, wanted));
    if outline.lines.is_empty() {
        outline
            .lines
            .push(format!("[no line contains \"{query}\"]"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_keeps_matching_lines() {
        let lines = ["Sign in", "[e1 button \"Sign up\"]", "other"];
        let outline = PageOutline {
            lines: lines.map(str::to_owned).to_vec(),
            ..PageOutline::default()
        };
        for (query, count) in [
            ("sign", 2),
            ("sign UP", 1),
            ("up in zebra", 2),
            ("nothing", 1),
        ] {
            let mut outline = outline.clone();
            filter_lines(&mut outline, query);
            assert_eq!(outline.lines.len(), count, "{query}");
        }
    }
}
