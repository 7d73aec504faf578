//! Server-sent events, as WHATWG HTML's section 9.2 reads them.
//!
//! A parser of our own because an event's size has to be bounded: the common
//! crates keep an event that never ends whole in memory.

use std::collections::VecDeque;

/// What a stream of bytes held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// An event: its name, empty if it has none, and its data.
    Event(String, Vec<u8>),
    /// An event above the limit, passed over.
    TooLarge,
}

/// Takes bytes as they come, cut anywhere. Holds no more of an event than the
/// limit, whatever comes.
#[derive(Debug, Default)]
pub(super) struct Parser {
    limit: usize,
    /// The lines of the event that name it or hold its data, and the line that has not ended.
    event: Vec<u8>,
    /// The bytes of the line that has not ended; they are passed over if the event is too large.
    line_bytes: usize,
    /// The last byte was a carriage return, which a line feed may belong to.
    after_return: bool,
    had_line: bool,
    is_too_large: bool,
    ready: VecDeque<Frame>,
}

impl Parser {
    /// A parser of events of less than so many bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// The next whole event.
    pub(super) fn next(&mut self) -> Option<Frame> {
        self.ready.pop_front()
    }

    /// Takes more bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|b| matches!(b, b'\n' | b'\r'));
            let Some(end) = end else {
                return self.add(bytes);
            };
            self.add(&bytes[..end]);
            self.after_return = bytes[end] == b'\r';
            self.end_line();
            bytes = &bytes[end + 1..];
        }
    }

    fn add(&mut self, part: &[u8]) {
        self.line_bytes += part.len();
        // The line's end takes a byte too.
        self.is_too_large |= self.event.len() + part.len() >= self.limit;
        if self.is_too_large {
            self.event = Vec::new();
        } else {
            self.event.extend_from_slice(part);
        }
    }

    fn end_line(&mut self) {
        let mut bytes = std::mem::take(&mut self.line_bytes);
        if !std::mem::replace(&mut self.had_line, true) && self.event.starts_with(BYTE_ORDER_MARK) {
            self.event.drain(..BYTE_ORDER_MARK.len());
            bytes -= BYTE_ORDER_MARK.len();
        }
        if bytes == 0 {
            return self.end_event();
        }
        if self.is_too_large {
            return;
        }
        let start = self.event.len() - bytes;
        match field(&self.event[start..]).0 {
            b"event" | b"data" => self.event.push(b'\n'),
            // Comments, which are heartbeats, have an empty field.
            _ => self.event.truncate(start),
        }
    }

    fn end_event(&mut self) {
        let event = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.is_too_large) {
            return self.ready.push_back(Frame::TooLarge);
        }
        let (mut name, mut data) = (&[][..], Vec::new());
        for (field, value) in event.split(|byte| *byte == b'\n').map(field) {
            match field {
                b"event" => name = value,
                b"data" => data.push(value),
                _ => {}
            }
        }
        if !data.is_empty() {
            let name = String::from_utf8_lossy(name).into_owned();
            self.ready.push_back(Frame::Event(name, data.join(&b'\n')));
        }
    }
}

/// A line's field and its value.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let colon = line.iter().position(|byte| *byte == b':');
    let (field, value) = line.split_at(colon.unwrap_or(line.len()));
    let value = value.strip_prefix(b":").unwrap_or(value);
    (field, value.strip_prefix(b" ").unwrap_or(value))
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 64;

    fn parse(chunks: &[&[u8]]) -> Vec<Frame> {
        let mut parser = Parser::new(LIMIT);
        for chunk in chunks {
            parser.feed(chunk);
        }
        std::iter::from_fn(|| parser.next()).collect()
    }

    fn event(name: &str, data: &str) -> Frame {
        Frame::Event(name.into(), data.into())
    }

    #[test]
    fn mastodons_stream_is_read() {
        let stream = b":)\n:thump\nevent: update\ndata: {\"id\":\"1\"}\n\n:thump\nevent: delete\ndata: 1\n\nevent: filters_changed\n\n";
        assert_eq!(
            parse(&[stream]),
            [event("update", "{\"id\":\"1\"}"), event("delete", "1")]
        );
    }

    #[test]
    fn lines_end_in_every_way_and_data_may_have_several() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = [
                "\u{feff}data:a",
                "data",
                "data:  b",
                "id: 7",
                "retry: 1",
                "",
            ]
            .join(end)
                + end;
            assert_eq!(
                parse(&[stream.as_bytes()]),
                [event("", "a\n\n b")],
                "{end:?}"
            );
        }
    }

    #[test]
    fn an_unfinished_event_is_dropped() {
        assert_eq!(parse(&[b"data: 1\n"]), []);
        assert_eq!(parse(&[b"data: 1\n\n", b"data: 2"]), [event("", "1")]);
    }

    #[test]
    fn an_event_above_the_limit_is_passed_over_and_the_next_is_read() {
        let long = "x".repeat(LIMIT);
        for large in [
            format!("event: update\ndata: {long}\n\n"),
            format!(": {long}\ndata: 1\n\n"),
            format!("data: {}\n", &long[..20]).repeat(5) + "\n",
            format!("{long}{long}\nevent: update\ndata: 1\r\n\r\n"),
        ] {
            let stream = format!("{large}event: delete\ndata: 2\n\n");
            assert_eq!(
                parse(&[stream.as_bytes()]),
                [Frame::TooLarge, event("delete", "2")],
                "{stream}"
            );
        }
    }

    proptest! {
        #[test]
        fn chunks_may_be_cut_anywhere(
            bytes in proptest::collection::vec(
                prop_oneof![
                    Just(b"data:".to_vec()), Just(b"event:".to_vec()), Just(b"\n".to_vec()),
                    Just(b"\r".to_vec()), Just(b"\r\n".to_vec()), Just(b"\n\n".to_vec()),
                    Just(b":".to_vec()), Just(b" ".to_vec()), Just(vec![0xef, 0xbb, 0xbf]),
                    Just(vec![b'x'; 40]),
                    proptest::collection::vec(any::<u8>(), 0..8),
                ],
                0..60,
            ).prop_map(|parts| parts.concat()),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> =
                cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let whole = parse(&[&bytes]);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&parse(&chunks), &whole);
            prop_assert_eq!(&parse(&single), &whole);
        }

        #[test]
        fn no_more_than_the_limit_is_held(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just(b"data:y".to_vec()), Just(b"\n".to_vec()), Just(vec![b'x'; 30]),
                ],
                0..60,
            ),
        ) {
            let mut parser = Parser::new(LIMIT);
            for part in &parts {
                parser.feed(part);
                while let Some(frame) = parser.next() {
                    if let Frame::Event(name, data) = frame {
                        prop_assert!(name.len() + data.len() <= LIMIT);
                    }
                }
                let held = parser.event.len();
                prop_assert!(held <= LIMIT, "{held}");
            }
        }
    }
}
