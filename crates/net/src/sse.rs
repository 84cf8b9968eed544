//! Parser for server-sent events, independent of how the bytes are split into chunks.

/// Error of an invalid event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("an event is too long")]
    TooLong,
    #[error("the stream is not valid UTF-8")]
    NotText,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    pub name: String,
    pub data: String,
}

/// An incremental parser: [`feed`](Self::feed) it bytes, and it appends the events that they
/// complete.
#[derive(Debug)]
pub struct SseParser {
    max_event_bytes: usize,
    /// The bytes of the current, incomplete line.
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    after_return: bool,
}

impl SseParser {
    /// Creates a parser that rejects an event as soon as it exceeds `max_event_bytes`.
    pub fn new(max_event_bytes: usize) -> Self {
        let (line, event) = (Vec::new(), SseEvent::default());
        Self {
            max_event_bytes,
            line,
            event,
            has_data: false,
            after_return: false,
        }
    }

    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let is_crlf_end = self.after_return && at == 0 && rest[0] == b'\n';
            self.after_return = rest[at] == b'\r';
            if !is_crlf_end {
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
        let buffered = self.line.len() + self.event.data.len() + self.event.name.len();
        if buffered + bytes.len() > self.max_event_bytes {
            return Err(SseError::TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends the last event of a stream that ends without an empty line.
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
    fn events_do_not_depend_on_chunking() {
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
    fn rejects_invalid_utf_8() {
        assert_eq!(parse(&[b"data: \xff\n\n"]), Err(SseError::NotText));
    }

    /// B105
    #[test]
    fn rejects_events_over_the_limit() {
        let line = [b'x'; 1024];
        assert_eq!(
            parse(&[&line[..]; 65]),
            Err(SseError::TooLong),
            "unterminated line"
        );
        let data = [b"data: ".as_slice(), &line, b"\n"].concat();
        assert_eq!(
            parse(&vec![&data[..]; 65]),
            Err(SseError::TooLong),
            "unterminated event"
        );
        let name = [b"event: ".as_slice(), &[b'n'; LIMIT - 1024], b"\n"].concat();
        assert_eq!(
            parse(&[&name, &data, &data]),
            Err(SseError::TooLong),
            "the name counts"
        );
        let many = [data.as_slice(), b"\n"].concat();
        assert_eq!(
            parse(&vec![&many[..]; 200]).map(|events| events.len()),
            Ok(200),
            "each event is short"
        );
        let comments = [b": ".as_slice(), &line, b"\n"].concat();
        assert_eq!(
            parse(&vec![&comments[..]; 200]),
            Ok(Vec::new()),
            "comments are not buffered"
        );
    }
}
