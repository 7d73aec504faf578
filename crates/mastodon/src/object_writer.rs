use serde::Serialize;

use crate::template::{PostName, Template};

/// Writes a JSON object. [`ObjectWriter::close`] ends it.
#[derive(Debug)]
pub struct ObjectWriter<'o> {
    out: &'o mut Template,
    separator: u8,
}

impl<'o> ObjectWriter<'o> {
    /// Begins an object.
    pub fn open(out: &'o mut Template) -> Self {
        Self {
            out,
            separator: b'{',
        }
    }

    /// Continues an object that already has members.
    pub(crate) fn after_members(out: &'o mut Template) -> Self {
        Self {
            out,
            separator: b',',
        }
    }

    /// Writes a member whose value is already valid JSON.
    pub fn json(&mut self, key: &str, json: &str) {
        self.key(key).json(json);
    }

    /// Writes a member whose value becomes JSON: a text, a number, an ID, or an option of these.
    pub fn value(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        self.key(key).value(value);
    }

    /// Writes the key of a member, whose value the caller writes next.
    pub fn key(&mut self, key: &str) -> &mut Template {
        self.separate();
        // Keys need no escaping.
        self.out.json("\"");
        self.out.json(key);
        self.out.json("\":");
        self.out
    }

    /// Writes a key that is already JSON, with its quotes.
    pub(crate) fn written_key(&mut self, key: &str) -> &mut Template {
        self.separate();
        self.out.text.extend_from_slice(key.as_bytes());
        self.out.text.push(b':');
        self.out
    }

    /// Ends the object.
    pub fn close(self) {
        if self.separator == b'{' {
            self.out.text.push(b'{');
        }
        self.out.text.push(b'}');
    }

    /// Ends an object that has members. Leaves room before its end for the overlay of the given
    /// post.
    pub(crate) fn close_with_overlay(self, post: PostName) {
        self.out.overlay(post);
        self.close();
    }

    fn separate(&mut self) {
        self.out.text.push(self.separator);
        self.separator = b',';
    }
}
