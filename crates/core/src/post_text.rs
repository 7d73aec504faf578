//! The searchable text of a post.

use std::{borrow::Cow, collections::BTreeSet};

use crate::{names::acct::AcctKey, predicate::Condition};

/// The searchable text of a post: its warning, its text, the options of its poll and the
/// descriptions of its media. For a boost, those of the boosted post.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostText {
    /// The version of the extraction that made it.
    pub extraction: i64,
    /// The entries, joined by [`PostText::SEPARATOR`].
    pub joined: String,
    /// The labels of the conditions that the post meets ([`Condition::label`]), in order and joined alike. Those of
    /// mentions have the names that the post's server gives the accounts: see [`PostText::labels_at`].
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
    pub fn with_labels(self, conditions: impl IntoIterator<Item = Condition>) -> PostText {
        let conditions = conditions.into_iter();
        self.labelled(conditions.filter_map(|condition| condition.label()))
    }

    /// Adds the labels of the accounts that the post mentions, with the names that its server gives them.
    #[must_use]
    pub fn with_mentions(self, accts: impl IntoIterator<Item = String>) -> PostText {
        let accts = accts.into_iter();
        self.labelled(accts.map(|acct| format!("{MENTIONS}{}", acct.to_ascii_lowercase())))
    }

    /// Adds the labels of another text.
    #[must_use]
    pub fn with_labels_of(self, other: &PostText) -> PostText {
        self.labelled(split(&other.labels).map(str::to_owned))
    }

    fn labelled(mut self, labels: impl Iterator<Item = String>) -> PostText {
        let labels: Vec<String> = labels
            .map(|label| label.replace(PostText::SEPARATOR, " "))
            .collect();
        let labels = labels.iter().map(String::as_str);
        let all: BTreeSet<&str> = split(&self.labels).chain(labels).collect();
        let mut joined = String::new();
        for label in all {
            push(&mut joined, label);
        }
        self.labels = joined;
        self
    }

    /// The labels as conditions have them. The server at `origin`, which showed the post, names its own accounts
    /// without their host.
    pub fn labels_at<'t>(&'t self, origin: &'t str) -> impl Iterator<Item = Cow<'t, str>> {
        split(&self.labels).filter_map(move |label| match label.strip_prefix(MENTIONS) {
            Some(acct) => {
                let key = AcctKey::new(acct, origin)?;
                Some(Cow::Owned(format!("{MENTIONS}{}", key.as_str())))
            }
            None => Some(Cow::Borrowed(label)),
        })
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

const MENTIONS: &str = "mentions:";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predicate::{Acct, PostTrait};

    #[test]
    fn labels_are_those_of_conditions_whatever_their_order() {
        let names = || ["Bob", "@eve", "ann@B.example", "a\u{1f}b", "", "Bob"].map(str::to_owned);
        let is = |of| Condition::Is(of);
        let text = PostText::default()
            .with_labels([is(PostTrait::Reply), is(PostTrait::Bot)])
            .with_mentions(names());
        let other = PostText::default()
            .with_mentions(names().into_iter().rev())
            .with_labels([is(PostTrait::Bot), is(PostTrait::Reply)]);
        assert_eq!(text, other);
        let labels: Vec<_> = text.labels_at("https://A.example").collect();
        assert_eq!(labels[..2], ["is:bot", "is:reply"]);
        let accts = [
            "bob@a.example",
            "@eve@a.example",
            "ann@b.example",
            "a\u{1f}b@a.example",
        ];
        assert_eq!(labels.len(), 2 + accts.len());
        for acct in accts {
            let condition = Acct::new(acct).map(Condition::Mentions).expect("a name");
            let label = condition.label().expect("a label");
            assert!(labels.iter().any(|of| *of == label), "{label} {labels:?}");
        }
    }

    #[test]
    fn entries_are_the_ones_that_were_joined() {
        let text = PostText::from_entries(3, ["pets", "", "a\u{1f}b", "\u{1f}"]);
        assert_eq!(text.joined, "pets\u{1f}a b\u{1f} ");
        assert_eq!(text.entries().collect::<Vec<_>>(), ["pets", "a b", " "]);
        assert_eq!(text.extraction, 3);
        assert_eq!(PostText::default().entries().count(), 0);
    }
}
