//! What is written while walking over a page: lines in parts, each line with where it came from.

/// A part of a page that belongs together, as lines of markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownBlock {
    pub lines: Vec<MarkdownLine>,
    /// Where it is a heading: its level, and its words without any marks.
    pub heading: Option<(u8, String)>,
    /// A list, a table or a listing, whose lines stand for themselves.
    pub is_laid_out: bool,
    /// Whether an empty line stands before it.
    pub is_apart: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownLine {
    pub text: String,
    /// The first and the last line of the page that it holds text of, counted from 1; nothing for marks alone.
    pub source: Option<(u32, u32)>,
}

impl MarkdownBlock {
    /// Its lines behind those of the part before.
    pub fn lines_apart(&self) -> impl Iterator<Item = &str> {
        self.is_apart.then_some("").into_iter().chain(self.lines.iter().map(|line| line.text.as_str()))
    }
}

#[derive(Default)]
pub struct MarkdownBuffer {
    parts: Vec<MarkdownBlock>,
    out: String,
    /// For each line of `out`, as far as they are known.
    sources: Vec<Option<(u32, u32)>>,
    /// How many lines of `out` are finished.
    line: usize,
    written: usize,
    /// Line ends that are due before the next text.
    breaks: usize,
    /// A part is due before the next text.
    is_due: bool,
    /// A space is due before the next text on the same line.
    pub space: bool,
    is_apart: bool,
    is_laid_out: bool,
    heading: Option<(u8, String)>,
}

/// A place between two characters.
#[derive(Clone, Copy)]
pub struct BufferPosition {
    part: usize,
    offset: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BreakKind {
    Part,
    Line,
}

impl MarkdownBuffer {
    pub fn break_off(&mut self, lines: usize, cut: BreakKind) {
        self.breaks = self.breaks.max(lines);
        self.is_due |= cut == BreakKind::Part;
    }

    pub fn is_at_break(&self) -> bool {
        self.breaks > 0
    }

    /// Writes the line ends and spaces that are due.
    pub fn begin(&mut self, quotes: usize, indent: usize) {
        if self.breaks > 0 {
            if self.is_due {
                self.finish_part();
                self.is_apart = self.breaks > 1;
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
        } else if self.space && !self.out.ends_with(char::is_whitespace) && !self.out.is_empty() {
            self.push(" ");
        }
        (self.breaks, self.space, self.is_due) = (0, false, false);
    }

    pub fn push(&mut self, text: &str) {
        self.written += text.len();
        self.line += text.matches('\n').count();
        self.out.push_str(text);
    }

    /// What is pushed next came from this line.
    pub fn note(&mut self, source: u32) {
        if self.sources.len() <= self.line {
            self.sources.resize(self.line + 1, None);
        }
        let known = &mut self.sources[self.line];
        *known = Some(known.map_or((source, source), |(first, last)| (first.min(source), last.max(source))));
    }

    pub fn ends_with(&self, mark: char) -> bool {
        self.out.ends_with(mark)
    }

    pub fn written(&self) -> usize {
        self.written
    }

    pub fn spot(&self) -> BufferPosition {
        BufferPosition { part: self.parts.len(), offset: self.out.len() }
    }

    /// What was written since, as long as no part ended meanwhile.
    pub fn since(&self, spot: BufferPosition) -> Option<&str> {
        if spot.part == self.parts.len() { self.out.get(spot.offset..) } else { None }
    }

    /// A mark that could not be written before what follows it was known.
    pub fn insert(&mut self, spot: BufferPosition, behind: usize, mark: char) {
        self.out.insert(spot.offset + behind, mark);
    }

    pub fn lay_out(&mut self) {
        self.is_laid_out = true;
    }

    /// The line that was begun is a heading, and so a part of its own.
    pub fn head(&mut self, level: u8, words: String) {
        let start = self.out.rfind('\n').map_or(0, |end| end + 1);
        let line = self.out.split_off(start);
        self.finish_part();
        self.out = line;
        (self.heading, self.is_apart) = (Some((level, words)), true);
    }

    pub fn finish(mut self) -> Vec<MarkdownBlock> {
        self.finish_part();
        self.parts
    }

    fn finish_part(&mut self) {
        let out = std::mem::take(&mut self.out);
        let sources = std::mem::take(&mut self.sources).into_iter().chain(std::iter::repeat(None));
        let lines = tidied(out.lines().zip(sources));
        let (heading, is_laid_out) = (self.heading.take(), std::mem::take(&mut self.is_laid_out));
        self.line = 0;
        if !lines.is_empty() {
            self.parts.push(MarkdownBlock { lines, heading, is_laid_out, is_apart: self.is_apart });
        }
    }
}

/// Without spaces at the ends of lines, without more than one empty line outside of code, without empty items.
fn tidied<'a>(lines: impl Iterator<Item = (&'a str, Option<(u32, u32)>)>) -> Vec<MarkdownLine> {
    let mut tidied: Vec<MarkdownLine> = Vec::new();
    let mut is_code = false;
    for (text, source) in lines {
        let text = text.trim_end();
        let text = if tidied.is_empty() { text.trim_start() } else { text };
        if text.trim_start_matches([' ', '>']).starts_with("```") {
            is_code = !is_code;
        }
        let is_repeated = text.is_empty() && tidied.last().is_none_or(|last| last.text.is_empty());
        if is_code || !(is_repeated || is_mark_alone(text)) {
            tidied.push(MarkdownLine { text: text.to_owned(), source });
        }
    }
    while tidied.pop_if(|last| last.text.is_empty()).is_some() {}
    tidied
}

fn is_mark_alone(line: &str) -> bool {
    let mark = line.trim_start();
    mark == "-" || (!mark.is_empty() && mark.bytes().all(|byte| byte == b'#'))
}
