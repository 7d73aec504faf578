use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;

use derive_where::derive_where;

use crate::decimal;
use crate::text::ParseIdError;

/// A 64-bit ID that belongs to entities of type `T`.
///
/// `T` is only a name: every `Id<T>` is `Copy`, `Send` and ordered. Displays and parses as decimal
/// digits. With the feature `serde` it is a string, since numbers above 2^53 lose digits in JSON.
///
/// IDs of different entities do not mix:
///
/// ```compile_fail,E0308
/// use driftline_id::Id;
/// struct Post;
/// struct Account;
/// let post: Id<Post> = Id::new(1);
/// let account: Id<Account> = post;
/// ```
///
/// ```
/// use driftline_id::Id;
/// struct Post;
/// let post: Id<Post> = "1050118621198921728".parse()?;
/// let same: Id<Post> = post;
/// assert_eq!(post, same);
/// # Ok::<(), driftline_id::ParseIdError>(())
/// ```
#[derive_where(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id<T> {
    raw: u64,
    entity: PhantomData<fn() -> T>,
}

/// An ID or integer outside of the other type's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdRangeError {
    /// A signed integer below zero.
    #[error("{value} is negative, and IDs are not; read the integer as unsigned")]
    Negative {
        /// The integer.
        value: i64,
    },
    /// An ID above 2^63 - 1.
    #[error(
        "the ID {raw} is above 2^63 - 1, the largest signed 64-bit integer; \
         keep it as text or unsigned"
    )]
    AboveSigned {
        /// The ID's value.
        raw: u64,
    },
}

impl<T> Id<T> {
    /// The ID with this value.
    pub const fn new(raw: u64) -> Self {
        Self {
            raw,
            entity: PhantomData,
        }
    }

    /// The ID's value.
    pub const fn raw(self) -> u64 {
        self.raw
    }
}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.raw)
    }
}

impl<T> fmt::Display for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

impl<T> FromStr for Id<T> {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        decimal::parse_u64(text).map(Self::new)
    }
}

impl<T> From<u64> for Id<T> {
    fn from(raw: u64) -> Self {
        Self::new(raw)
    }
}

impl<T> From<Id<T>> for u64 {
    fn from(id: Id<T>) -> Self {
        id.raw
    }
}

impl<T> TryFrom<i64> for Id<T> {
    type Error = IdRangeError;

    fn try_from(value: i64) -> Result<Self, IdRangeError> {
        u64::try_from(value)
            .map(Self::new)
            .map_err(|_| IdRangeError::Negative { value })
    }
}

impl<T> TryFrom<Id<T>> for i64 {
    type Error = IdRangeError;

    fn try_from(id: Id<T>) -> Result<Self, IdRangeError> {
        i64::try_from(id.raw).map_err(|_| IdRangeError::AboveSigned { raw: id.raw })
    }
}
