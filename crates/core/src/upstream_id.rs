//! Upstream IDs: opaque text that each source orders in its own way.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest length of an accepted ID, in bytes.
pub const MAX_ID_BYTES: usize = 255;

/// A post's ID as written by its upstream: opaque text.
///
/// Two IDs are compared only through an [`IdOrder`], by their [`Key`]s.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UpstreamId(Box<str>);

impl UpstreamId {
    /// An ID with this unchanged text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text as written by the upstream.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The ID by which this server knows the post. It is the same for all IDs that an upstream
    /// gives to one post.
    ///
    /// snac's IDs contain the time of the last change to the post's file, which an edit or a boost
    /// moves, and then the MD5 of the post's `uri`. snac finds posts by the MD5 alone. The stable
    /// ID has zeros in place of the time.
    #[must_use]
    pub fn stable(&self) -> Self {
        Self::stable_text(&self.0).map_or_else(|| self.clone(), Self::new)
    }

    /// The text of [`UpstreamId::stable`], if it differs.
    pub fn stable_text(id: &str) -> Option<String> {
        let (_, lasting) = changing_digits(id)?;
        Some(format!("{:0CHANGING_DIGITS$}{lasting}", 0))
    }

    /// The ID that this post would have at the position of another post, if their IDs change.
    #[must_use]
    pub fn at_place_of(&self, other: &Self) -> Option<Self> {
        let (_, lasting) = changing_digits(&self.0)?;
        let (digits, _) = changing_digits(&other.0)?;
        Some(Self::new(format!("{digits}{lasting}")))
    }
}

/// The part of an ID that changes with its post, and the rest; `None` if no part changes.
fn changing_digits(id: &str) -> Option<(&str, &str)> {
    if id.len() != CHANGING_DIGITS + LASTING_DIGITS {
        return None;
    }
    let (digits, lasting) = id.split_at_checked(CHANGING_DIGITS)?;
    let is_changing = digits.bytes().all(|b| b.is_ascii_digit())
        && lasting.bytes().all(|b| b.is_ascii_hexdigit());
    is_changing.then_some((digits, lasting))
}

const CHANGING_DIGITS: usize = 10;
const LASTING_DIGITS: usize = 32;

impl fmt::Display for UpstreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for UpstreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpstreamId({})", self.0)
    }
}

impl From<&str> for UpstreamId {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

named_enum! {
    /// The order of a source's IDs.
    pub enum IdOrder: "kebab-case" {
        /// Decimal numbers of any length.
        Numeric,
        /// Shorter before longer, equal lengths byte by byte (Pleroma, Misskey).
        #[serde(rename = "length_then_text")]
        LengthThenText,
        /// Byte by byte (ULID, UUIDv7, TID).
        Text,
    }
}

impl IdOrder {
    /// The sort key of an ID under this order.
    ///
    /// # Errors
    /// [`BadIdError`] if the ID is empty, too long, contains characters other than printable ASCII,
    /// or, under [`IdOrder::Numeric`], is not a decimal number in its shortest form.
    pub fn key(self, id: &UpstreamId) -> Result<Key, BadIdError> {
        let text = id.as_str();
        let bad = |reason| BadIdError {
            id: shorten(text),
            reason,
        };
        if text.is_empty() {
            return Err(bad("it is empty"));
        }
        if text.len() > MAX_ID_BYTES {
            return Err(bad("it is longer than 255 bytes"));
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(bad(
                "it holds characters other than printable ASCII without spaces",
            ));
        }
        match self {
            Self::Numeric => {
                if !text.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(bad(
                        "the source orders its IDs as numbers; if the server is right, remove the source and add it with another --id-order",
                    ));
                }
                if text.len() > 1 && text.starts_with('0') {
                    return Err(bad(
                        "the source orders its IDs as numbers, which do not start with zero; if the server is right, remove the source and add it with another --id-order",
                    ));
                }
                Ok(Key(format!("{:03}{text}", text.len()).into()))
            }
            Self::LengthThenText => Ok(Key(format!("{:03}{text}", text.len()).into())),
            Self::Text => Ok(Key(text.into())),
        }
    }

    /// The ID for a key of this order.
    pub fn id(self, key: &Key) -> UpstreamId {
        match self {
            Self::Numeric | Self::LengthThenText => {
                UpstreamId::new(key.0.get(3..).unwrap_or_default())
            }
            Self::Text => UpstreamId::new(&*key.0),
        }
    }
}

/// An ID's sort key. The byte order of keys is the source's order of IDs, in Rust, in SQLite
/// (`binary`) and in PostgreSQL (`collate "C"`).
///
/// A key need not belong to a post: bounds of ranges are keys, too.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(Box<str>);

impl Key {
    /// Below every ID.
    pub fn lowest() -> Self {
        Self::default()
    }

    /// Above every ID: no printable ASCII text reaches it.
    pub fn highest() -> Self {
        Self("\u{7f}".into())
    }

    /// A key from the store.
    pub fn from_stored(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text to store and to compare.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if this is [`Key::lowest`].
    pub fn is_lowest(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0)
    }
}

/// An ID that cannot be ordered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid ID {id:?}: {reason}")]
pub struct BadIdError {
    /// The ID, shortened.
    pub id: String,
    /// The reason.
    pub reason: &'static str,
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(order: IdOrder, id: &str) -> Key {
        order.key(&id.into()).expect("a good ID")
    }

    #[test]
    fn numbers_order_by_value_at_the_boundaries() {
        let ends = [10, 1 << 32, 1 << 53, 1 << 63, 1_u128 << 64];
        let numbers = ends.into_iter().flat_map(|end| [end - 1, end, end + 1]);
        let keys: Vec<Key> = numbers
            .map(|number| key(IdOrder::Numeric, &number.to_string()))
            .collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn ids_that_change_with_their_post_have_a_part_that_stays() {
        let edited: UpstreamId = "1700000060D41D8CD98F00B204E9800998ECF8427E".into();
        let stable: UpstreamId = "0000000000D41D8CD98F00B204E9800998ECF8427E".into();
        assert_eq!((edited.stable(), stable.stable()), (stable.clone(), stable));
        let other: UpstreamId = "1700000000ffffffffffffffffffffffffffffffff".into();
        let placed = UpstreamId::from("1700000000D41D8CD98F00B204E9800998ECF8427E");
        assert_eq!(edited.at_place_of(&other), Some(placed));
        for id in [
            "116000000000000000",
            "d41d8cd98f00b204e9800998ecf8427e",
            "170000006xd41d8cd98f00b204e9800998ecf8427e",
            "1700000060d41d8cd98f00b204e9800998ecf8427é",
        ] {
            let id = UpstreamId::from(id);
            assert_eq!((id.stable(), id.at_place_of(&other)), (id.clone(), None));
        }
    }

    #[test]
    fn every_key_lies_between_lowest_and_highest() {
        for &order in IdOrder::ALL {
            for id in ["0", "1", "999"] {
                let key = key(order, id);
                assert!(Key::lowest() < key && key < Key::highest());
            }
        }
        assert!(key(IdOrder::Text, "~~~") < Key::highest());
    }

    #[test]
    fn bad_ids_are_refused_with_the_reason() {
        for (order, id) in [
            (IdOrder::Numeric, ""),
            (IdOrder::Numeric, "12a"),
            (IdOrder::Numeric, "-1"),
            (IdOrder::Numeric, "007"),
            (IdOrder::Text, "a b"),
            (IdOrder::Text, "é"),
            (IdOrder::Text, "\u{7f}"),
        ] {
            assert!(order.key(&id.into()).is_err(), "{order:?} took {id:?}");
        }
        assert!(
            IdOrder::Text
                .key(&UpstreamId::new("x".repeat(256)))
                .is_err()
        );
    }

    proptest! {
        #[test]
        fn numeric_keys_order_as_numbers(a: u128, b: u128) {
            let (ka, kb) = (key(IdOrder::Numeric, &a.to_string()), key(IdOrder::Numeric, &b.to_string()));
            prop_assert_eq!(a.cmp(&b), ka.cmp(&kb));
            prop_assert_eq!(IdOrder::Numeric.id(&ka), UpstreamId::new(a.to_string()));
        }

        #[test]
        fn length_then_text_orders_so(a in "[0-9a-z]{1,20}", b in "[0-9a-z]{1,20}") {
            let expected = a.len().cmp(&b.len()).then_with(|| a.cmp(&b));
            prop_assert_eq!(expected, key(IdOrder::LengthThenText, &a).cmp(&key(IdOrder::LengthThenText, &b)));
        }
    }
}
