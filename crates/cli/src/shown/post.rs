//! Posts as people read them in lists.

use super::{beginning, plain, time};

/// The parts of a post that people are shown in a list.
#[derive(Clone, Copy, Debug)]
pub struct PostParts<'a> {
    /// The time of creation in Unix ms.
    pub created_at_ms: Option<i64>,
    /// The author, `name@host`.
    pub author: &'a str,
    /// The address.
    pub address: Option<&'a str>,
    /// The text.
    pub text: &'a str,
}

impl PostParts<'_> {
    /// A line with the time, the author and the address, and one with the beginning of the text.
    pub fn lines(&self) -> [String; 2] {
        let created = self.created_at_ms.map_or_else(|| "-".to_owned(), time);
        let text: Vec<&str> = self.text.split_whitespace().collect();
        [
            format!(
                "{created}  @{}  {}",
                plain(self.author),
                plain(self.address.unwrap_or("-"))
            ),
            format!("    {}", beginning(&plain(&text.join(" ")))),
        ]
    }
}
