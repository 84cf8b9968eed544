//! Extracts the text of a PDF page. A page only records the positions of characters; lines, spaces
//! and paragraphs are derived from the distances between them.

use std::collections::HashMap;

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Encoding, Object};

/// Distances that mean a new line, a new paragraph or a space, relative to the font size.
const LINE_STEP: f32 = 0.5;
const PARAGRAPH_STEP: f32 = 1.75;
const SPACE: f32 = 0.2;
/// The maximum depth of saved graphics states.
const MAX_SAVED: usize = 256;

pub struct Font<'a> {
    encoding: Encoding<'a>,
    /// The widths of characters, starting with `first`, in thousandths of the font size.
    first: usize,
    widths: Vec<f32>,
}

impl<'a> Font<'a> {
    pub fn from_dictionary(
        font: &'a Dictionary,
        file: &'a lopdf::Document,
        limit: usize,
    ) -> Option<Self> {
        let encoding = font.get_font_encoding_with_limit(file, limit).ok()?;
        let first = font.get(b"FirstChar").and_then(Object::as_i64).unwrap_or(0);
        let widths = font
            .get(b"Widths")
            .and_then(|widths| file.dereference(widths));
        let widths = widths.ok().and_then(|(_, widths)| widths.as_array().ok());
        let widths = widths
            .map(|widths| widths.iter().map(number).collect())
            .unwrap_or_default();
        Some(Self {
            encoding,
            first: usize::try_from(first).unwrap_or(0),
            widths,
        })
    }

    /// Returns the width of a string relative to the font size; estimated if the font has no widths.
    fn width(&self, bytes: &[u8], text: &str) -> f32 {
        if self.widths.is_empty() {
            let is_narrow = |char: char| (char as u32) < 0x1100;
            return text
                .chars()
                .map(|char| if is_narrow(char) { 0.5 } else { 1.0 })
                .sum();
        }
        let width_of = |byte: &u8| {
            (*byte as usize)
                .checked_sub(self.first)
                .and_then(|at| self.widths.get(at))
        };
        bytes
            .iter()
            .map(|byte| width_of(byte).map_or(0.5, |width| width / 1000.0))
            .sum()
    }
}

pub fn page_text(content: &[u8], fonts: &HashMap<&[u8], &Font<'_>>) -> String {
    let mut writer = PdfTextWriter::new(fonts);
    // Operations after the first malformed one cannot be decoded.
    for operation in Content::decode_iter(content).map_while(Result::ok) {
        writer.execute(&operation);
    }
    clean(&writer.text)
}

/// An affine transformation.
#[derive(Clone, Copy)]
struct Matrix([f32; 6]);

impl Matrix {
    const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    fn translation(x: f32, y: f32) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    fn from_operands(operands: &[Object]) -> Self {
        let mut numbers = [0.0; 6];
        for (number, operand) in numbers.iter_mut().zip(operands) {
            *number = self::number(operand);
        }
        Self(numbers)
    }

    /// Returns the transformation that applies `self`, then `other`.
    fn then(self, other: Self) -> Self {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.0, other.0);
        Self([
            a * g + b * i,
            a * h + b * j,
            c * g + d * i,
            c * h + d * j,
            e * g + f * i + k,
            e * h + f * j + l,
        ])
    }

    /// Returns the scale along a line and across it.
    fn scale(self) -> (f32, f32) {
        let [a, b, c, d, ..] = self.0;
        (a.hypot(b), c.hypot(d))
    }
}

struct PdfTextWriter<'a> {
    fonts: &'a HashMap<&'a [u8], &'a Font<'a>>,
    font: Option<&'a Font<'a>>,
    size: f32,
    leading: f32,
    page: Matrix,
    saved: Vec<Matrix>,
    line: Matrix,
    /// The width of the text on the current line, in text space units.
    advance: f32,
    /// The end of the last string, in page coordinates.
    last: Option<(f32, f32)>,
    text: String,
}

impl<'a> PdfTextWriter<'a> {
    fn new(fonts: &'a HashMap<&'a [u8], &'a Font<'a>>) -> Self {
        Self {
            fonts,
            font: None,
            size: 0.0,
            leading: 0.0,
            page: Matrix::IDENTITY,
            saved: Vec::new(),
            line: Matrix::IDENTITY,
            advance: 0.0,
            last: None,
            text: String::new(),
        }
    }

    fn execute(&mut self, operation: &Operation) {
        let operands = operation.operands.as_slice();
        match operation.operator.as_str() {
            "q" if self.saved.len() < MAX_SAVED => self.saved.push(self.page),
            "Q" => self.page = self.saved.pop().unwrap_or(self.page),
            "cm" => self.page = Matrix::from_operands(operands).then(self.page),
            "BT" => self.set_line_matrix(Matrix::IDENTITY),
            "Tf" => self.set_font(operands),
            "TL" => self.leading = operands.first().map_or(0.0, number),
            "Tm" => self.set_line_matrix(Matrix::from_operands(operands)),
            "Td" | "TD" => {
                let (x, y) = (
                    operands.first().map_or(0.0, number),
                    operands.get(1).map_or(0.0, number),
                );
                if operation.operator == "TD" {
                    self.leading = -y;
                }
                self.set_line_matrix(Matrix::translation(x, y).then(self.line));
            }
            "T*" => self.next_line(),
            "Tj" | "TJ" => self.show_strings(operands),
            "'" => {
                self.next_line();
                self.show_strings(operands);
            }
            "\"" => {
                self.next_line();
                self.show_strings(operands.get(2..).unwrap_or_default());
            }
            _ => {}
        }
    }

    fn set_line_matrix(&mut self, line: Matrix) {
        self.line = line;
        self.advance = 0.0;
    }

    fn next_line(&mut self) {
        let down = if self.leading == 0.0 {
            self.size
        } else {
            self.leading
        };
        self.set_line_matrix(Matrix::translation(0.0, -down).then(self.line));
    }

    fn set_font(&mut self, operands: &[Object]) {
        let name = operands.first().and_then(|name| name.as_name().ok());
        self.font = name.and_then(|name| self.fonts.get(name).copied());
        self.size = operands.get(1).map_or(0.0, number);
    }

    fn show_strings(&mut self, operands: &[Object]) {
        for operand in operands {
            match operand {
                Object::String(bytes, _) => self.show_string(bytes),
                Object::Array(parts) => {
                    for part in parts {
                        match part {
                            Object::String(bytes, _) => self.show_string(bytes),
                            // A shift to the left, in thousandths of the font size.
                            distance => self.advance -= number(distance) / 1000.0 * self.size,
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn show_string(&mut self, bytes: &[u8]) {
        let Some(font) = self.font else { return };
        let Ok(text) = lopdf::Document::decode_text(&font.encoding, bytes) else {
            return;
        };
        let (x, y) = self.position();
        let (along, across) = self.line.then(self.page).scale();
        self.write_separator(
            x,
            y,
            (self.size * across).abs().max(0.1),
            (self.size * along).abs().max(0.1),
        );
        self.text.push_str(&text);
        self.advance += font.width(bytes, &text) * self.size;
        self.last = Some(self.position());
    }

    fn position(&self) -> (f32, f32) {
        let [.., x, y] = Matrix::translation(self.advance, 0.0)
            .then(self.line)
            .then(self.page)
            .0;
        (x, y)
    }

    /// Writes the line break or space that the distance to the last string implies.
    fn write_separator(&mut self, x: f32, y: f32, height: f32, width: f32) {
        let Some((last_x, last_y)) = self.last else {
            return;
        };
        let (right, down) = ((x - last_x) / width, (y - last_y).abs() / height);
        if down > PARAGRAPH_STEP {
            self.text.push_str("\n\n");
        } else if down > LINE_STEP {
            self.text.push('\n');
        } else if right.abs() > SPACE && !self.text.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
    }
}

fn number(object: &Object) -> f32 {
    object
        .as_float()
        .ok()
        .filter(|number| number.is_finite())
        .unwrap_or(0.0)
}

/// Removes control characters and redundant spaces.
fn clean(text: &str) -> String {
    let visible: String = text
        .chars()
        .map(|char| {
            if char == '\t' || char == '\u{a0}' {
                ' '
            } else {
                char
            }
        })
        .filter(|char| *char == '\n' || !char.is_control())
        .collect();
    let lines: Vec<String> = visible
        .split('\n')
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    lines.join("\n")
}
