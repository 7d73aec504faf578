//! The searchable text of a post.

use crate::predicate::Condition;

/// The searchable text of a post: its warning, its text, the options of its poll and the
/// descriptions of its media. For a boost, those of the boosted post.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostText {
    /// The version of the extraction that made it.
    pub extraction: i64,
    /// The entries, joined by [`PostText::SEPARATOR`].
    pub joined: String,
    /// The labels of the conditions that the post meets ([`Condition::label`]), joined alike.
    pub labels: String,
}

impl PostText {
    /// Separates the entries. No entry contains it.
    pub const SEPARATOR: char = '\u{1f}';

    /// Joins the entries that are not empty. A separator inside an entry becomes a space.
    pub fn from_entries<'e>(
        extraction: i64,
        entries: impl IntoIterator<Item = &'e str>,
    ) -> PostText {
        let mut joined = String::new();
        for entry in entries.into_iter().filter(|entry| !entry.is_empty()) {
            push(&mut joined, entry);
        }
        PostText {
            extraction,
            joined,
            labels: String::new(),
        }
    }

    /// Adds the labels of conditions that the post meets. A condition without a label adds none.
    #[must_use]
    pub fn with_labels(mut self, conditions: impl IntoIterator<Item = Condition>) -> PostText {
        let labels = conditions
            .into_iter()
            .filter_map(|condition| condition.label());
        for label in labels {
            push(&mut self.labels, &label);
        }
        self
    }

    /// The entries, in their order.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        split(&self.joined)
    }
}

/// The texts that are joined in a field of a [`PostText`], in their order.
pub fn split(joined: &str) -> impl Iterator<Item = &str> {
    let parts = joined.split(PostText::SEPARATOR);
    parts.filter(|part| !part.is_empty())
}

fn push(joined: &mut String, text: &str) {
    if !joined.is_empty() {
        joined.push(PostText::SEPARATOR);
    }
    match text.contains(PostText::SEPARATOR) {
        true => joined.push_str(&text.replace(PostText::SEPARATOR, " ")),
        false => joined.push_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_the_ones_that_were_joined() {
        let text = PostText::from_entries(3, ["pets", "", "a\u{1f}b", "\u{1f}"]);
        assert_eq!(text.joined, "pets\u{1f}a b\u{1f} ");
        assert_eq!(text.entries().collect::<Vec<_>>(), ["pets", "a b", " "]);
        assert_eq!(text.extraction, 3);
        assert_eq!(PostText::default().entries().count(), 0);
    }
}
