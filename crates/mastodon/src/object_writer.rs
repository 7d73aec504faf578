use std::io::Write;

use serde::Serialize;

/// Writes a JSON object. [`ObjectWriter::close`] ends it.
#[derive(Debug)]
pub struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    separator: u8,
}

impl<'o> ObjectWriter<'o> {
    /// Begins an object.
    pub fn open(out: &'o mut Vec<u8>) -> Self {
        Self {
            out,
            separator: b'{',
        }
    }

    /// A member whose value is valid JSON already.
    pub fn json(&mut self, key: &str, json: &str) {
        self.key(key).extend_from_slice(json.as_bytes());
    }

    /// A member to write as JSON: a text, a number, an ID, an option of these.
    pub fn value(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        let out = self.key(key);
        let start = out.len();
        if serde_json::to_writer(&mut *out, value).is_err() {
            out.truncate(start);
            out.extend_from_slice(b"null");
        }
    }

    /// A member whose value the caller writes next.
    pub fn key(&mut self, key: &str) -> &mut Vec<u8> {
        self.out.push(self.separator);
        self.separator = b',';
        // Writing to memory cannot fail, and keys need no escaping.
        let _ = write!(self.out, "\"{key}\":");
        self.out
    }

    /// Ends the object.
    pub fn close(self) {
        if self.separator == b'{' {
            self.out.push(b'{');
        }
        self.out.push(b'}');
    }
}
