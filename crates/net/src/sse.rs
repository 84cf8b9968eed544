//! Server-sent events out of bytes, however these are cut into chunks.

/// More than any honest server sends in one event.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// Why bytes are no events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("an event has no end")]
    Endless,
    #[error("it is not valid UTF-8")]
    NotText,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    pub name: String,
    pub data: String,
}

/// Feed it bytes; take the events that they complete.
#[derive(Debug, Default)]
pub struct SseParser {
    /// The bytes of the line that is not whole yet.
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    after_return: bool,
}

impl SseParser {
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let is_second_half = self.after_return && at == 0 && rest[0] == b'\n';
            self.after_return = rest[at] == b'\r';
            if !is_second_half {
                self.line.extend_from_slice(&rest[..at]);
                self.end_line(events)?;
            }
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            self.after_return = false;
            self.line.extend_from_slice(rest);
        }
        if self.line.len() + self.event.data.len() > MAX_EVENT_BYTES {
            return Err(SseError::Endless);
        }
        Ok(())
    }

    /// What stands at the end of a stream without its empty line.
    pub fn end(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
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

    fn parse(chunks: &[&[u8]]) -> Result<Vec<SseEvent>, SseError> {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        for chunk in chunks {
            parser.feed(chunk, &mut events)?;
        }
        parser.end(&mut events)?;
        Ok(events)
    }

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { name: name.into(), data: data.into() }
    }

    #[test]
    fn any_chunking_gives_the_same_events() {
        let text = "\u{feff}: hi\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\ndata: ü\n\nid: 7\n\rdata\r\r: end\n\ndata: last";
        let whole = parse(&[text.as_bytes()]).unwrap();
        assert_eq!(whole, [event("a", "1\n2"), event("", "ü"), event("", ""), event("", "last")]);
        for at in 0..text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            assert_eq!(parse(&[a, b]).unwrap(), whole, "split at {at}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(parse(&bytes).unwrap(), whole);
    }

    #[test]
    fn bad_bytes_are_refused() {
        assert!(parse(&[b"data: \xff\n\n"]).is_err());
        let endless = vec![b'x'; 1024 * 1024];
        assert!(parse(&[&endless[..]; 20]).is_err());
    }
}
