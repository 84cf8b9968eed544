//! What is written while walking over a page: lines in parts, each line with where it came from.

/// A part of a page that belongs together, as lines of markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownBlock {
    pub lines: Vec<MarkdownLine>,
    /// Where it is a heading: its level, and its words without any marks.
    pub heading: Option<(u8, String)>,
    /// A list, a table or a listing, whose lines stand for themselves.
    pub is_line_based: bool,
    /// Whether an empty line stands before it.
    pub has_blank_before: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownLine {
    pub text: String,
    /// The first and the last line of the page that it holds text of, counted from 1; nothing for marks alone.
    pub source: Option<(u32, u32)>,
}

impl MarkdownBlock {
    /// Its lines behind those of the part before.
    pub fn separated_lines(&self) -> impl Iterator<Item = &str> {
        self.has_blank_before
            .then_some("")
            .into_iter()
            .chain(self.lines.iter().map(|line| line.text.as_str()))
    }
}

#[derive(Default)]
pub struct MarkdownBuffer {
    blocks: Vec<MarkdownBlock>,
    out: String,
    /// For each line of `out`, as far as they are known.
    sources: Vec<Option<(u32, u32)>>,
    /// How many lines of `out` are finished.
    line: usize,
    bytes_written: usize,
    /// Line ends that are due before the next text.
    breaks: usize,
    /// A part is due before the next text.
    is_block_due: bool,
    /// A space is due before the next text on the same line.
    pub is_space_due: bool,
    has_blank_before: bool,
    is_line_based: bool,
    heading: Option<(u8, String)>,
}

/// A place between two characters.
#[derive(Clone, Copy)]
pub struct BufferPosition {
    block: usize,
    offset: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BreakKind {
    Block,
    Line,
}

impl MarkdownBuffer {
    pub fn request_break(&mut self, lines: usize, cut: BreakKind) {
        self.breaks = self.breaks.max(lines);
        self.is_block_due |= cut == BreakKind::Block;
    }

    pub fn is_at_break(&self) -> bool {
        self.breaks > 0
    }

    /// Writes the line ends and spaces that are due.
    pub fn flush_breaks(&mut self, quotes: usize, indent: usize) {
        if self.breaks > 0 {
            if self.is_block_due {
                self.finish_block();
                self.has_blank_before = self.breaks > 1;
            }
            let is_start = self.out.is_empty();
            for left in (0..self.breaks).rev() {
                if !is_start {
                    self.push("\n");
                }
                if left == 0 || !is_start {
                    self.push(&"> ".repeat(quotes));
                }
            }
            self.push(&"  ".repeat(indent));
        } else if self.is_space_due
            && !self.out.ends_with(char::is_whitespace)
            && !self.out.is_empty()
        {
            self.push(" ");
        }
        (self.breaks, self.is_space_due, self.is_block_due) = (0, false, false);
    }

    pub fn push(&mut self, text: &str) {
        self.bytes_written += text.len();
        self.line += text.matches('\n').count();
        self.out.push_str(text);
    }

    /// What is pushed next came from this line.
    pub fn record_source(&mut self, source: u32) {
        if self.sources.len() <= self.line {
            self.sources.resize(self.line + 1, None);
        }
        let known = &mut self.sources[self.line];
        *known = Some(known.map_or((source, source), |(first, last)| {
            (first.min(source), last.max(source))
        }));
    }

    pub fn ends_with(&self, mark: char) -> bool {
        self.out.ends_with(mark)
    }

    pub fn bytes_written(&self) -> usize {
        self.bytes_written
    }

    pub fn position(&self) -> BufferPosition {
        BufferPosition {
            block: self.blocks.len(),
            offset: self.out.len(),
        }
    }

    /// What was written since, as long as no part ended meanwhile.
    pub fn text_since(&self, spot: BufferPosition) -> Option<&str> {
        if spot.block == self.blocks.len() {
            self.out.get(spot.offset..)
        } else {
            None
        }
    }

    /// A mark that could not be written before what follows it was known.
    pub fn insert(&mut self, spot: BufferPosition, behind: usize, mark: char) {
        self.out.insert(spot.offset + behind, mark);
    }

    pub fn mark_line_based(&mut self) {
        self.is_line_based = true;
    }

    /// The line that was begun is a heading, and so a part of its own.
    pub fn start_heading(&mut self, level: u8, words: String) {
        let start = self.out.rfind('\n').map_or(0, |end| end + 1);
        let line = self.out.split_off(start);
        self.finish_block();
        self.out = line;
        (self.heading, self.has_blank_before) = (Some((level, words)), true);
    }

    pub fn finish(mut self) -> Vec<MarkdownBlock> {
        self.finish_block();
        self.blocks
    }

    fn finish_block(&mut self) {
        let out = std::mem::take(&mut self.out);
        let sources = std::mem::take(&mut self.sources)
            .into_iter()
            .chain(std::iter::repeat(None));
        let lines = tidy_lines(out.lines().zip(sources));
        let (heading, is_laid_out) = (self.heading.take(), std::mem::take(&mut self.is_line_based));
        self.line = 0;
        if !lines.is_empty() {
            self.blocks.push(MarkdownBlock {
                lines,
                heading,
                is_line_based: is_laid_out,
                has_blank_before: self.has_blank_before,
            });
        }
    }
}

/// Without spaces at the ends of lines, without more than one empty line outside of code, without empty items.
fn tidy_lines<'a>(lines: impl Iterator<Item = (&'a str, Option<(u32, u32)>)>) -> Vec<MarkdownLine> {
    let mut tidied: Vec<MarkdownLine> = Vec::new();
    let mut is_code = false;
    for (text, source) in lines {
        let text = text.trim_end();
        let text = if tidied.is_empty() {
            text.trim_start()
        } else {
            text
        };
        if text.trim_start_matches([' ', '>']).starts_with("```") {
            is_code = !is_code;
        }
        let is_repeated = text.is_empty() && tidied.last().is_none_or(|last| last.text.is_empty());
        if is_code || !(is_repeated || is_lone_marker(text)) {
            tidied.push(MarkdownLine {
                text: text.to_owned(),
                source,
            });
        }
    }
    while tidied.pop_if(|last| last.text.is_empty()).is_some() {}
    tidied
}

fn is_lone_marker(line: &str) -> bool {
    let mark = line.trim_start();
    mark == "-" || (!mark.is_empty() && mark.bytes().all(|byte| byte == b'#'))
}
