//! The output buffer of the markdown writer: blocks of lines, each line with its source lines.

/// A block of a page, as lines of markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownBlock {
    pub lines: Vec<MarkdownLine>,
    /// For a heading: its level and its text without markup.
    pub heading: Option<(u8, String)>,
    /// True for a list, a table or a code block: its lines are independent of each other.
    pub is_line_based: bool,
    /// True if a blank line precedes the block.
    pub has_blank_before: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownLine {
    pub text: String,
    /// The first and the last source line of its text, counted from 1; `None` for lines without text.
    pub source: Option<(u32, u32)>,
}

impl MarkdownBlock {
    /// Returns the lines, preceded by a blank line if there is one.
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
    /// The source lines of each line of `out`.
    sources: Vec<Option<(u32, u32)>>,
    /// The number of finished lines of `out`.
    line: usize,
    bytes_written: usize,
    /// Line breaks due before the next text.
    breaks: usize,
    /// True if a new block is due before the next text.
    is_block_due: bool,
    /// True if a space is due before the next text on the same line.
    pub is_space_due: bool,
    has_blank_before: bool,
    is_line_based: bool,
    heading: Option<(u8, String)>,
}

/// A position between two characters.
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
    pub fn request_break(&mut self, lines: usize, kind: BreakKind) {
        self.breaks = self.breaks.max(lines);
        self.is_block_due |= kind == BreakKind::Block;
    }

    pub fn is_at_break(&self) -> bool {
        self.breaks > 0
    }

    /// Writes the line breaks and spaces that are due.
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

    /// Records the source line of the text that is pushed next.
    pub fn record_source(&mut self, source: u32) {
        if self.sources.len() <= self.line {
            self.sources.resize(self.line + 1, None);
        }
        let range = &mut self.sources[self.line];
        *range = Some(range.map_or((source, source), |(first, last)| {
            (first.min(source), last.max(source))
        }));
    }

    pub fn ends_with(&self, c: char) -> bool {
        self.out.ends_with(c)
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

    /// Returns the text since `position`, or `None` if the block has ended since then.
    pub fn text_since(&self, position: BufferPosition) -> Option<&str> {
        if position.block == self.blocks.len() {
            self.out.get(position.offset..)
        } else {
            None
        }
    }

    /// Inserts a marker that depends on the text after it.
    pub fn insert(&mut self, position: BufferPosition, offset: usize, marker: char) {
        self.out.insert(position.offset + offset, marker);
    }

    pub fn mark_line_based(&mut self) {
        self.is_line_based = true;
    }

    /// Turns the current line into a heading, which is a block of its own.
    pub fn start_heading(&mut self, level: u8, text: String) {
        let start = self.out.rfind('\n').map_or(0, |end| end + 1);
        let line = self.out.split_off(start);
        self.finish_block();
        self.out = line;
        (self.heading, self.has_blank_before) = (Some((level, text)), true);
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
        let (heading, is_line_based) =
            (self.heading.take(), std::mem::take(&mut self.is_line_based));
        self.line = 0;
        if !lines.is_empty() {
            self.blocks.push(MarkdownBlock {
                lines,
                heading,
                is_line_based,
                has_blank_before: self.has_blank_before,
            });
        }
    }
}

/// Removes trailing spaces, repeated blank lines outside of code, and empty items.
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
    let marker = line.trim_start();
    marker == "-" || (!marker.is_empty() && marker.bytes().all(|byte| byte == b'#'))
}
