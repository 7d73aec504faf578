//! Statuses as the bytes of an answer.

use super::Quirks;
use crate::{
    rng::{Rng, hash_text},
    status::Status,
    wire,
};

/// Characters that are written as escapes, which mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Escapes {
    /// `<`, `>` and `&` as `\u003c`, `\u003e` and `\u0026`.
    pub html: bool,
    /// `/` as `\/`.
    pub slash: bool,
    /// What is not ASCII as `\uXXXX`.
    pub non_ascii: bool,
}

impl Escapes {
    /// JSON that was written without escapes; these characters stand in its texts only.
    fn apply(self, json: &str) -> String {
        if self == Self::default() {
            return json.to_owned();
        }
        let mut text = String::with_capacity(json.len() * 5 / 4);
        for c in json.chars() {
            match c {
                '<' | '>' | '&' if self.html => escape(&mut text, c),
                '/' if self.slash => text.push_str("\\/"),
                _ if self.non_ascii && !c.is_ascii() => escape(&mut text, c),
                _ => text.push(c),
            }
        }
        text
    }
}

fn escape(text: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        text.push_str(&format!("\\u{unit:04x}"));
    }
}

impl Quirks {
    /// A page's body.
    pub(crate) fn page_body(&self, statuses: &[Status]) -> Vec<u8> {
        self.list(statuses, self.page_escapes)
    }

    /// The body of a look-up of several posts.
    pub(crate) fn look_ups_body(&self, statuses: &[Status]) -> Vec<u8> {
        self.list(statuses, self.look_up_escapes)
    }

    fn list(&self, statuses: &[Status], escapes: Escapes) -> Vec<u8> {
        let items = statuses.iter().map(|status| self.item(status, escapes));
        let mut body = vec![b'['];
        body.extend(items.collect::<Vec<_>>().join(&b','));
        body.push(b']');
        body
    }

    /// The body of a look-up of one post.
    pub(crate) fn look_up_body(&self, status: &Status) -> Vec<u8> {
        self.item(status, self.look_up_escapes)
    }

    /// Whether this post cannot be read, by the ID that it had first.
    pub fn is_unreadable(&self, first_id: &str) -> bool {
        drawn(first_id, UNREADABLE, self.unreadable_share)
    }

    /// Whether what stands for an unreadable post names its ID.
    pub fn names_unreadable(&self, first_id: &str) -> bool {
        hash_text(first_id) % 4 >= 2
    }

    fn item(&self, status: &Status, escapes: Escapes) -> Vec<u8> {
        let first_id = status.first_id().as_str();
        if self.is_unreadable(first_id) {
            return unreadable(status);
        }
        let mut json = wire::status_json(status).to_string();
        if drawn(first_id, REPEATED_KEYS, self.repeated_keys_share) {
            json.replace_range(
                ..1,
                "{\"content\":\"<p>stale</p>\",\"x_extra\":1,\"x_extra\":2,",
            );
        }
        escapes.apply(&json).into_bytes()
    }
}

/// What stands where a post should.
fn unreadable(status: &Status) -> Vec<u8> {
    let id = &status.id;
    match hash_text(status.first_id().as_str()) % 4 {
        0 => b"null".to_vec(),
        1 => b"{\"content\":\"<p>no ID</p>\",\"account\":{\"id\":\"1\"}}".to_vec(),
        2 => {
            format!("{{\"id\":\"{id}\",\"reblog\":{{\"content\":\"<p>no ID</p>\"}}}}").into_bytes()
        }
        _ => {
            let mut json = format!("{{\"id\":\"{id}\",\"content\":\"").into_bytes();
            // No UTF-8.
            json.extend([0xc3, 0x28, 0xff]);
            json.extend(b"\"}");
            json
        }
    }
}

fn drawn(first_id: &str, stream: u64, share: f64) -> bool {
    share > 0.0 && Rng::stream(hash_text(first_id), stream).happens(share)
}

// The random streams of an ID.
const UNREADABLE: u64 = 11;
const REPEATED_KEYS: u64 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_mean_the_same() {
        let json = serde_json::json!({ "a": "<p>é 流 🙂</p> & \"x\" \\ /" });
        for escapes in [
            Escapes {
                html: true,
                ..Escapes::default()
            },
            Escapes {
                slash: true,
                ..Escapes::default()
            },
            Escapes {
                non_ascii: true,
                ..Escapes::default()
            },
            Escapes {
                html: true,
                slash: true,
                non_ascii: true,
            },
        ] {
            let text = escapes.apply(&json.to_string());
            assert_ne!(text, json.to_string(), "{escapes:?}");
            let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(read, json, "{escapes:?}: {text}");
        }
    }
}
