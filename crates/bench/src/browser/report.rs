//! The table that compares the programs.

use std::collections::HashMap;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::json;
use tiktoken_rs::CoreBPE;

use super::processes::Memory;

/// Fewer tokens than this are a title and an address without content.
const LEAST_TOKENS: usize = 20;

static O200K: LazyLock<Option<CoreBPE>> = LazyLock::new(|| tiktoken_rs::o200k_base().ok());

#[derive(Serialize)]
pub struct PageResult {
    pub name: String,
    /// Tokens (o200k); none if the page was not read or shows no content.
    pub tokens: Option<usize>,
    ms: f64,
    error: Option<String>,
}

impl PageResult {
    pub fn new(name: String, ms: f64, opened: Result<String>) -> Result<Self> {
        let (tokens, error) = match opened {
            Ok(text) => {
                let count = count_tokens(&text)?;
                let is_empty = count < LEAST_TOKENS || text.contains("[the page shows no text");
                match is_empty {
                    true => (None, Some(format!("empty: {text}"))),
                    false => (Some(count), None),
                }
            }
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        Ok(Self {
            name,
            tokens,
            ms,
            error,
        })
    }
}

fn count_tokens(text: &str) -> Result<usize> {
    let tokenizer = O200K.as_ref().context("the tokenizer cannot be loaded")?;
    Ok(tokenizer.encode_ordinary(text).len())
}

/// The measurements of one program.
pub struct SubjectReport {
    pub name: String,
    pub start_ms: f64,
    pub click_ms: Vec<f64>,
    pub memory_at_start: Memory,
    pub memory_after_pages: Memory,
    pub pages: Vec<PageResult>,
}

impl SubjectReport {
    fn tokens(&self) -> Vec<f64> {
        let counts = self.pages.iter().filter_map(|page| page.tokens);
        counts.map(|count| count as f64).collect()
    }

    fn page_ms(&self) -> Vec<f64> {
        self.pages.iter().map(|page| page.ms).collect()
    }

    /// Returns how many times as many tokens each page takes as with another program.
    fn token_ratios(&self, other: &Self) -> Vec<f64> {
        let pages = other.pages.iter();
        let others: HashMap<_, _> = pages.map(|page| (&page.name, page.tokens)).collect();
        let ratio = |page: &PageResult| {
            let other = others.get(&page.name).copied().flatten()?;
            Some(page.tokens? as f64 / other as f64)
        };
        self.pages.iter().filter_map(ratio).collect()
    }
}

/// A line of the table: what it shows, and how it is computed from a program and from Lango.
type Row = (&'static str, fn(&SubjectReport, &SubjectReport) -> String);

const ROWS: [Row; 13] = [
    ("pages read", |one, _| {
        format!("{} of {}", one.tokens().len(), one.pages.len())
    }),
    ("tokens per page, median", |one, _| {
        number(median(&one.tokens()))
    }),
    ("tokens per page, most", |one, _| {
        number(largest(&one.tokens()))
    }),
    ("times Lango, median of the pages", |one, own| {
        format!("{:.1}", median(&one.token_ratios(own)))
    }),
    ("times Lango, most", |one, own| {
        format!("{:.1}", largest(&one.token_ratios(own)))
    }),
    ("address to outline, median", |one, _| {
        format!("{:.0} ms", median(&one.page_ms()))
    }),
    ("address to outline, most", |one, _| {
        format!("{:.0} ms", largest(&one.page_ms()))
    }),
    ("click, median", |one, _| {
        format!("{:.1} ms", median(&one.click_ms))
    }),
    ("click, most", |one, _| {
        format!("{:.1} ms", largest(&one.click_ms))
    }),
    ("start to first outline", |one, _| {
        format!("{:.0} ms", one.start_ms)
    }),
    ("memory of the browser at start", |one, _| {
        format!("{:.0} MB", one.memory_at_start.browser_mb)
    }),
    ("memory of the browser after the pages", |one, _| {
        format!("{:.0} MB", one.memory_after_pages.browser_mb)
    }),
    ("memory of the server after the pages", |one, _| {
        let server = one.memory_after_pages.server_mb;
        server.map_or("none of its own".to_owned(), |mb| format!("{mb:.0} MB"))
    }),
];

pub fn print_table(reports: &[SubjectReport]) {
    let Some(own) = reports.first() else { return };
    let names: Vec<_> = reports.iter().map(|report| report.name.as_str()).collect();
    println!("| | {} |", names.join(" | "));
    println!("|{}", "---|".repeat(names.len() + 1));
    for (title, value) in ROWS {
        let values: Vec<_> = reports.iter().map(|report| value(report, own)).collect();
        println!("| {title} | {} |", values.join(" | "));
    }
    if reports.len() == 1 {
        println!("\nThe peers were not measured.");
    }
    for report in reports {
        for page in &report.pages {
            let error = page.error.as_deref().and_then(|text| text.lines().next());
            if let Some(error) = error {
                eprintln!("{}, page {}: {error}", report.name, page.name);
            }
        }
    }
}

pub fn print_json(reports: &[SubjectReport]) {
    let Some(own) = reports.first() else { return };
    for report in reports {
        for page in &report.pages {
            let line = json!({ "bench": "browser page", "peer": report.name, "page": page });
            println!("{line}");
        }
    }
    for report in reports {
        let line = json!({ "bench": "browser", "peer": report.name,
            "pages": report.pages.len(), "pages_read": report.tokens().len(),
            "tokens_p50": median(&report.tokens()), "tokens_max": largest(&report.tokens()),
            "times_lango_p50": median(&report.token_ratios(own)),
            "outline_p50_ms": median(&report.page_ms()), "outline_max_ms": largest(&report.page_ms()),
            "click_p50_ms": median(&report.click_ms), "click_max_ms": largest(&report.click_ms),
            "start_ms": report.start_ms, "memory_at_start": report.memory_at_start,
            "memory_after_pages": report.memory_after_pages });
        println!("{line}");
    }
}

fn median(values: &[f64]) -> f64 {
    crate::measure::p50_p99(&mut values.to_vec()).0
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Formats a count with separators for thousands.
fn number(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_readable() {
        for (value, text) in [
            (0.0, "0"),
            (999.0, "999"),
            (1_000.0, "1,000"),
            (205_004.4, "205,004"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_page_without_content_counts_as_not_read() {
        let result = |text: &str| {
            PageResult::new("a".to_owned(), 1.0, Ok(text.to_owned()))
                .unwrap()
                .tokens
        };
        assert_eq!(result("page: A\nurl: http://a/"), None);
        let empty = "page: A long title of a page\nurl: http://127.0.0.1:4000/pages/3/\n\
            [the page shows no text; browser_screenshot shows how it looks]";
        assert_eq!(result(empty), None);
        assert!(result(&"words and more of them ".repeat(10)).is_some());
        let failed = PageResult::new("a".to_owned(), 1.0, Err(anyhow::anyhow!("dead"))).unwrap();
        assert_eq!(failed.tokens, None);
    }
}
