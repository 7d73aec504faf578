use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

named_enum! {
    /// The kind of a change to a post in a source.
    #[derive(PartialOrd, Ord)]
    pub enum ChangeKind: "snake_case" {
        /// The post is new in the source.
        New,
        /// The post was edited, or is shown again after it was deleted or had left.
        Edit,
        /// The post was deleted.
        Delete,
        /// The source does not list the post any more, but it is not known to be deleted.
        Left,
    }
}

/// A set of kinds of changes. Its text lists their names, separated by commas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChangeKinds(u8);

impl ChangeKinds {
    /// All kinds.
    pub const ALL: ChangeKinds = ChangeKinds(0b1111);

    /// Only new posts.
    pub const NEW: ChangeKinds = ChangeKinds(0b1);

    /// True if the set contains `kind`.
    pub fn contains(self, kind: ChangeKind) -> bool {
        self.0 & bit(kind) != 0
    }
}

/// [`ChangeKinds::NEW`].
impl Default for ChangeKinds {
    fn default() -> Self {
        Self::NEW
    }
}

impl fmt::Display for ChangeKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = ChangeKind::ALL.iter();
        let kinds = kinds.filter(|kind| self.contains(**kind));
        for (place, kind) in kinds.enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{kind}")?;
        }
        Ok(())
    }
}

/// A text with a name that is not a kind of change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no event {0:?}; the events are new, edit, delete and left, with commas between")]
pub struct UnknownChangeKind(String);

impl FromStr for ChangeKinds {
    type Err = UnknownChangeKind;

    fn from_str(text: &str) -> Result<Self, UnknownChangeKind> {
        let mut kinds = 0;
        for name in text.split(',').map(str::trim) {
            let kind = name.parse();
            kinds |= bit(kind.map_err(|_| UnknownChangeKind(name.to_owned()))?);
        }
        Ok(Self(kinds))
    }
}

impl TryFrom<String> for ChangeKinds {
    type Error = UnknownChangeKind;

    fn try_from(text: String) -> Result<Self, UnknownChangeKind> {
        text.parse()
    }
}

impl From<ChangeKinds> for String {
    fn from(kinds: ChangeKinds) -> String {
        kinds.to_string()
    }
}

fn bit(kind: ChangeKind) -> u8 {
    1 << kind as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for bits in 1..=ChangeKinds::ALL.0 {
            let kinds = ChangeKinds(bits);
            assert_eq!(kinds.to_string().parse(), Ok(kinds));
        }
        assert_eq!(" new , left".parse(), Ok(ChangeKinds(0b1001)));
    }

    #[test]
    fn an_unknown_kind_is_named() {
        for (text, wrong) in [("new,old", "old"), ("", ""), ("new,", ""), ("New", "New")] {
            assert_eq!(
                text.parse::<ChangeKinds>(),
                Err(UnknownChangeKind(wrong.to_owned()))
            );
        }
    }
}
