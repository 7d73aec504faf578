use reqwest::Response;

/// A stream of a server's events, which reports that libraries have changes. It uses no folder.
#[derive(Debug)]
pub struct NewsStream {
    response: Response,
    lines: EventLines,
    names_all: bool,
}

impl NewsStream {
    pub(crate) fn new(response: Response, names_all: bool) -> Self {
        Self {
            response,
            lines: EventLines::default(),
            names_all,
        }
    }

    /// False if there were more libraries than a stream can cover.
    pub const fn names_all(&self) -> bool {
        self.names_all
    }

    /// Waits for news; false once the stream has ended. May be dropped at any time.
    pub async fn next(&mut self) -> bool {
        loop {
            if self.lines.take_news() {
                return true;
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.lines.add(&bytes),
                Ok(None) | Err(_) => return false,
            }
        }
    }
}

/// The lines of server-sent events. Only the names of the events are read.
#[derive(Debug, Default)]
struct EventLines {
    /// The beginning of a line that has not ended yet.
    line: Vec<u8>,
    /// True if the event that has not ended yet is named `news`.
    is_news: bool,
    has_news: bool,
}

impl EventLines {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                // Longer lines name no event that is known here.
                _ if self.line.len() >= MAX_LINE => {}
                _ => self.line.push(*byte),
            }
        }
    }

    /// Returns true if news came since the last call.
    fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    fn end_line(&mut self) {
        match self.line.trim_ascii_end() {
            b"" => self.has_news |= std::mem::take(&mut self.is_news),
            b"event: news" | b"event:news" => self.is_news = true,
            _ => {}
        }
        self.line.clear();
    }
}

const MAX_LINE: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_is_read_in_any_parts() {
        let other = b":\n\n: thump\n\nevent: other\ndata: {}\n\n";
        let news = b"event: news\ndata: {}\n\n";
        let with_returns = b"event:news\r\ndata: {}\r\n\r\n";
        for (text, is_news) in [
            (&other[..], false),
            (&news[..], true),
            (&with_returns[..], true),
        ] {
            for size in 1..=text.len() {
                let mut lines = EventLines::default();
                text.chunks(size).for_each(|part| lines.add(part));
                assert_eq!(lines.take_news(), is_news, "{size}");
            }
        }
        let mut lines = EventLines::default();
        lines.add(b"event: news\ndata: {}\n");
        assert!(!lines.take_news(), "the event has not ended");
        lines.add(b"\n");
        assert!(lines.take_news() && !lines.take_news());
        lines.add(&[b'x'; 1_000]);
        lines.add(b"\n\nevent: news\n\n");
        assert!(lines.take_news());
        assert!(lines.line.capacity() < 1_000);
    }
}
