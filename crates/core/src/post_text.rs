//! The searchable text of a post.

/// The searchable text of a post: its warning, its text, the options of its poll and the
/// descriptions of its media. For a boost, those of the boosted post.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostText {
    /// The version of the extraction that made it.
    pub extraction: i64,
    /// The entries, joined by [`PostText::SEPARATOR`].
    pub joined: String,
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
            if !joined.is_empty() {
                joined.push(Self::SEPARATOR);
            }
            match entry.contains(Self::SEPARATOR) {
                true => joined.push_str(&entry.replace(Self::SEPARATOR, " ")),
                false => joined.push_str(entry),
            }
        }
        PostText { extraction, joined }
    }

    /// The entries, in their order.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        let entries = self.joined.split(Self::SEPARATOR);
        entries.filter(|entry| !entry.is_empty())
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
