use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A position in the feed of several sources. For each source, by its ID, it contains the USN up to
/// which all changes are known. A source that is missing is at its beginning, so a source that is
/// added later loses nothing.
///
/// The text is `SOURCE:USN` for each source, separated by commas, or `start` without sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FeedPosition(BTreeMap<u64, i64>);

/// A text that is not a position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no position in the feed; expected one that it gave, such as 1:1042,7:99, or `start`"
)]
pub struct FeedPositionError(String);

impl FeedPosition {
    /// The USN up to which all changes of a source are known; 0 at its beginning.
    pub fn usn(&self, source: u64) -> i64 {
        self.0.get(&source).copied().unwrap_or(0)
    }

    /// Advances to a USN of a source. Never moves back.
    pub fn advance(&mut self, source: u64, usn: i64) {
        let known = self.0.entry(source).or_insert(0);
        *known = usn.max(*known);
    }

    /// Removes the sources for which `keep` is false, for example removed ones.
    pub fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        self.0.retain(|source, _| keep(*source));
    }

    /// The sources with their USNs, by their IDs.
    pub fn sources(&self) -> impl Iterator<Item = (u64, i64)> + '_ {
        self.0.iter().map(|(source, usn)| (*source, *usn))
    }
}

impl FromIterator<(u64, i64)> for FeedPosition {
    fn from_iter<I: IntoIterator<Item = (u64, i64)>>(sources: I) -> Self {
        Self(sources.into_iter().collect())
    }
}

impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(START);
        }
        for (place, (source, usn)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{source}:{usn}")?;
        }
        Ok(())
    }
}

impl From<FeedPosition> for String {
    fn from(position: FeedPosition) -> Self {
        position.to_string()
    }
}

impl TryFrom<String> for FeedPosition {
    type Error = FeedPositionError;

    fn try_from(text: String) -> Result<Self, FeedPositionError> {
        text.parse()
    }
}

impl FromStr for FeedPosition {
    type Err = FeedPositionError;

    fn from_str(text: &str) -> Result<Self, FeedPositionError> {
        let wrong = || FeedPositionError(text.chars().take(MAX_SHOWN).collect());
        if text == START {
            return Ok(Self::default());
        }
        let mut sources = BTreeMap::new();
        for part in text.split(',') {
            let (source, usn) = part.split_once(':').ok_or_else(wrong)?;
            let source = number(source).ok_or_else(wrong)?;
            let usn = number(usn).and_then(|usn| i64::try_from(usn).ok());
            if sources.insert(source, usn.ok_or_else(wrong)?).is_some() {
                return Err(wrong());
            }
        }
        Ok(Self(sources))
    }
}

/// Parses a number without a sign.
fn number(text: &str) -> Option<u64> {
    let is_written_so = text.bytes().all(|digit| digit.is_ascii_digit());
    is_written_so.then(|| text.parse().ok()).flatten()
}

const START: &str = "start";
const MAX_SHOWN: usize = 60;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_position_is_read_as_it_is_written(
            sources in proptest::collection::btree_map(any::<u64>(), 0..i64::MAX, 0..5)
        ) {
            let position: FeedPosition = sources.into_iter().collect();
            prop_assert_eq!(position.to_string().parse(), Ok(position));
        }

        #[test]
        fn any_text_is_a_position_or_refused(text in "[0-9:,a-z-]{0,12}") {
            if let Ok(position) = text.parse::<FeedPosition>() {
                prop_assert_eq!(position.to_string().parse(), Ok(position));
            }
        }
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in [
            "",
            "5",
            "1:",
            ":1",
            "1:2,",
            "1:2,1:3",
            "1:-2",
            "+1:2",
            "1:9223372036854775808",
        ] {
            assert!(text.parse::<FeedPosition>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_position_never_goes_back() {
        let mut position = FeedPosition::default();
        position.advance(7, 5);
        position.advance(7, 3);
        assert_eq!((position.usn(7), position.usn(8)), (5, 0));
    }
}
