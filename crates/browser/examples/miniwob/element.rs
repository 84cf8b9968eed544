//! Elements as outlines describe them.

/// An element in an outline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Element {
    pub id: String,
    /// Its role or tag.
    pub kind: String,
    pub name: String,
    pub value: String,
    /// The whole description.
    pub text: String,
    /// Words after the name and the value: states, colors.
    pub words: Vec<String>,
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Element {
    pub fn center(&self) -> (f64, f64) {
        (self.left + self.width / 2.0, self.top + self.height / 2.0)
    }

    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|one| one == word)
    }

    /// Returns the color as red, green and blue.
    pub fn color(&self) -> Option<(i32, i32, i32)> {
        self.words.iter().find_map(|word| parse_color(word))
    }
}

fn parse_color(word: &str) -> Option<(i32, i32, i32)> {
    let digits = word
        .strip_prefix('#')
        .filter(|digits| digits.is_ascii() && digits.len() == 6)?;
    let part = |at: usize| i32::from_str_radix(&digits[at..at + 2], 16).ok();
    Some((part(0)?, part(2)?, part(4)?))
}

/// Parses all descriptions such as `[e1 button "Go" #ff0000 8,60 140x22]`.
pub fn parse_elements(outline: &str) -> Vec<Element> {
    outline.lines().flat_map(parse_line).collect()
}

fn parse_line(line: &str) -> Vec<Element> {
    let starts: Vec<usize> = line
        .match_indices("[e")
        .filter(|(at, _)| line[at + 2..].starts_with(|c: char| c.is_ascii_digit()))
        .map(|(at, _)| at)
        .collect();
    let ends = starts.iter().skip(1).copied().chain([line.len()]);
    let parts = starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &line[*start..end]);
    parts.filter_map(parse_element).collect()
}

fn parse_element(part: &str) -> Option<Element> {
    let text = &part[1..part.rfind(']')?];
    let (head, rest) = text.split_once(" \"").unwrap_or((text, ""));
    let mut words = head.split_whitespace();
    let mut element = Element {
        id: words.next()?.to_owned(),
        kind: words.next()?.to_owned(),
        text: text.to_owned(),
        words: words.map(str::to_owned).collect(),
        ..Element::default()
    };
    let has_value_only = element.words.last().is_some_and(|word| word == "=");
    let (quoted, tail) = rest.rsplit_once('"').unwrap_or(("", rest));
    match quoted.split_once("\" = \"") {
        Some((name, value)) => (element.name, element.value) = (name.to_owned(), value.to_owned()),
        None if has_value_only => element.value = quoted.to_owned(),
        None => element.name = quoted.to_owned(),
    }
    element
        .words
        .extend(tail.split_whitespace().map(str::to_owned));
    for word in &element.words {
        let pair = |separator| {
            let (first, second): (&str, &str) = word.split_once(separator)?;
            Some((first.parse::<f64>().ok()?, second.parse::<f64>().ok()?))
        };
        if let Some((left, top)) = pair(',') {
            (element.left, element.top) = (left, top);
        }
        if let Some((width, height)) = pair('x') {
            (element.width, element.height) = (width, height);
        }
    }
    Some(element)
}
