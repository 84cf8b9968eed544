//! Server-sent events out of bytes, however these are cut into chunks.

/// Why bytes are no events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("an event is too long")]
    TooLong,
    #[error("it is not valid UTF-8")]
    NotText,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    pub name: String,
    pub data: String,
}

/// Feed it bytes; take the events that they complete.
#[derive(Debug)]
pub struct SseParser {
    max_event_bytes: usize,
    /// The bytes of the line that is not whole yet.
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    after_return: bool,
}

impl SseParser {
    /// An event with more bytes is refused as soon as they are there.
    pub fn new(most_event_bytes: usize) -> Self {
        let (line, event) = (Vec::new(), SseEvent::default());
        Self {
            max_event_bytes: most_event_bytes,
            line,
            event,
            has_data: false,
            after_return: false,
        }
    }

    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let is_second_half = self.after_return && at == 0 && rest[0] == b'\n';
            self.after_return = rest[at] == b'\r';
            if !is_second_half {
                self.add(&rest[..at])?;
                self.end_line(events)?;
            }
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            self.after_return = false;
            self.add(rest)?;
        }
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        let held = self.line.len() + self.event.data.len() + self.event.name.len();
        if held + bytes.len() > self.max_event_bytes {
            return Err(SseError::TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// What stands at the end of a stream without its empty line.
    pub fn finish(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        self.end_line(events)?;
        self.end_line(events)
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                events.push(event);
            }
            return Ok(());
        }
        let line = std::str::from_utf8(&line).map_err(|_| SseError::NotText)?;
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event.name),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 64 * 1024;

    fn parse(chunks: &[&[u8]]) -> Result<Vec<SseEvent>, SseError> {
        let (mut parser, mut events) = (SseParser::new(LIMIT), Vec::new());
        for chunk in chunks {
            parser.feed(chunk, &mut events)?;
        }
        parser.finish(&mut events)?;
        Ok(events)
    }

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent {
            name: name.into(),
            data: data.into(),
        }
    }

    #[test]
    fn any_chunking_gives_the_same_events() {
        let text = "\u{feff}: hi\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\ndata: ü\n\nid: 7\n\rdata\r\r: end\n\ndata: last";
        let whole = parse(&[text.as_bytes()]).unwrap();
        assert_eq!(
            whole,
            [
                event("a", "1\n2"),
                event("", "ü"),
                event("", ""),
                event("", "last")
            ]
        );
        for at in 0..text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            assert_eq!(parse(&[a, b]).unwrap(), whole, "split at {at}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(parse(&bytes).unwrap(), whole);
    }

    #[test]
    fn bad_bytes_are_refused() {
        assert_eq!(parse(&[b"data: \xff\n\n"]), Err(SseError::NotText));
    }

    /// B105
    #[test]
    fn an_event_without_an_end_is_refused() {
        let line = [b'x'; 1024];
        assert_eq!(
            parse(&[&line[..]; 65]),
            Err(SseError::TooLong),
            "no line ends"
        );
        let data = [b"data: ".as_slice(), &line, b"\n"].concat();
        assert_eq!(
            parse(&vec![&data[..]; 65]),
            Err(SseError::TooLong),
            "no event ends"
        );
        let name = [b"event: ".as_slice(), &[b'n'; LIMIT - 1024], b"\n"].concat();
        assert_eq!(
            parse(&[&name, &data, &data]),
            Err(SseError::TooLong),
            "its name counts"
        );
        let many = [data.as_slice(), b"\n"].concat();
        assert_eq!(
            parse(&vec![&many[..]; 200]).map(|events| events.len()),
            Ok(200),
            "each one alone is short"
        );
        let comments = [b": ".as_slice(), &line, b"\n"].concat();
        assert_eq!(
            parse(&vec![&comments[..]; 200]),
            Ok(Vec::new()),
            "comments are not held"
        );
    }
}
