use std::{fmt, str::FromStr};

use driftline_db::Tx;

use crate::{
    error::StoreError,
    id_types::{LocalAccountId, SourceKey},
    library::{LibraryOwner, history::LibraryHistory},
};

/// The changes of a library that a replica has. Its text is `1.EPOCH.NONCE.USN`, then `.aAFTER` while more changes follow, or
/// `.bBELOW` in a full sync, then `.hHELD` if it has that. Replicas do not read it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The library's epoch.
    pub epoch: i64,
    /// The nonce of the opening in which `usn` was given, in hexadecimal. Empty if the library has
    /// given no USN up to that.
    pub nonce: String,
    /// The library's last USN when the cursor was made; in a full sync, at its start. Objects that had moved up to it may be
    /// missing in the replica, so the cursor is valid only where it was given.
    pub usn: i64,
    /// The USN up to which the replica has all changes, if that is not `usn`.
    pub after: Option<i64>,
    /// In a full sync, the USN below which the replica has nothing yet.
    pub below: Option<i64>,
    /// The USN at which the replica was last complete: it had each object up to there, also those that moved above it while it
    /// paged. `None` before that, and in account libraries, which send whole objects.
    pub held: Option<i64>,
}

/// [`Cursor::held`] once a replica has an answer that ends at a USN. `held` is the one before it, `None` in a full sync. `has_more`
/// is true if the replica still lacks something up to there: more of the answer, or, since an object that moved above the
/// start of a full sync comes in no part of it, any news above that.
pub fn held_after(held: Option<i64>, end: i64, has_more: bool) -> Option<i64> {
    match has_more {
        true => held,
        false => Some(end),
    }
}

/// The text is not one that this server has given as a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor: expected one that this server has given, or null")]
pub struct CursorError;

/// The cursor of a replica that has all changes of an account's library.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn current_cursor(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Cursor, StoreError> {
    let library = LibraryHistory::load(tx, LibraryOwner::Account(account))?;
    Cursor::at(tx, library, library.update_count)
}

/// The cursor of a replica that has all changes of a source's library up to a USN.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn source_cursor(tx: &mut Tx<'_>, source: SourceKey, usn: i64) -> Result<Cursor, StoreError> {
    let library = LibraryHistory::load(tx, LibraryOwner::Source(source))?;
    Cursor::at(tx, library, usn)
}

impl Cursor {
    /// The cursor of a replica that has all changes up to a USN.
    pub(super) fn at(
        tx: &mut Tx<'_>,
        library: LibraryHistory,
        usn: i64,
    ) -> Result<Cursor, StoreError> {
        Ok(Cursor {
            epoch: library.epoch,
            nonce: library.nonce_at(tx, usn)?,
            usn,
            after: None,
            below: None,
            held: None,
        })
    }

    /// The USN up to which the replica has all changes.
    pub fn position(&self) -> i64 {
        self.after.unwrap_or(self.usn)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cursor {
            epoch, nonce, usn, ..
        } = self;
        write!(f, "{VERSION}.{epoch}.{nonce}.{usn}")?;
        match (self.after, self.below) {
            (_, Some(below)) => write!(f, ".b{below}")?,
            (Some(after), None) => write!(f, ".a{after}")?,
            (None, None) => {}
        }
        match self.held {
            Some(held) => write!(f, ".h{held}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Cursor, CursorError> {
        let parts: Vec<&str> = text.split('.').collect();
        let [VERSION, epoch, nonce, usn, ref places @ ..] = parts[..] else {
            return Err(CursorError);
        };
        let (mut after, mut below, mut held) = (None, None, None);
        for (index, place) in places.iter().enumerate() {
            match place.split_at_checked(1) {
                Some(("a", place)) if index == 0 => after = Some(number(place)?),
                Some(("b", place)) if index == 0 => below = Some(number(place)?),
                Some(("h", place)) if held.is_none() => held = Some(number(place)?),
                _ => return Err(CursorError),
            }
        }
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if nonce.len() > MAX_NONCE_BYTES || !nonce.bytes().all(is_digit) {
            return Err(CursorError);
        }
        Ok(Cursor {
            epoch: number(epoch)?,
            nonce: nonce.to_owned(),
            usn: number(usn)?,
            after,
            below,
            held,
        })
    }
}

/// A number from 0 on, as it is written.
fn number(text: &str) -> Result<i64, CursorError> {
    let is_canonical = text == "0" || !text.starts_with('0');
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_canonical && is_digits);
    number.ok_or(CursorError)
}

/// The version of the format.
const VERSION: &str = "1";
const MAX_NONCE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = Cursor {
            epoch: 3,
            nonce: "0f".repeat(16),
            usn: i64::MAX,
            after: None,
            below: None,
            held: None,
        };
        let unfinished = Cursor {
            after: Some(40),
            ..cursor.clone()
        };
        let in_full = Cursor {
            below: Some(40),
            ..cursor.clone()
        };
        let held = Cursor {
            held: Some(30),
            ..cursor.clone()
        };
        let paging = Cursor {
            held: Some(30),
            ..unfinished.clone()
        };
        let empty = Cursor {
            epoch: 1,
            nonce: String::new(),
            usn: 0,
            after: None,
            below: Some(1),
            held: None,
        };
        assert_eq!(empty.to_string(), "1.1..0.b1");
        assert!(paging.to_string().ends_with(".a40.h30"));
        for cursor in [cursor, unfinished, in_full, held, paging, empty] {
            assert_eq!(cursor.to_string().parse::<Cursor>(), Ok(cursor));
        }
    }

    #[test]
    fn other_texts_are_no_cursors() {
        for wrong in [
            "",
            "1",
            "1.1.0f",
            "2.1.0f.5",
            "1.1.0f.05",
            "1.+1.0f.5",
            "1.1.0f.-5",
            "1.1.0F.5",
            "1.1.0g.5",
            "1.1.0f.",
            "1.1.0f.5.",
            "1.1.0f.5.6",
            "1.1.0f.5.a",
            "1.1.0f.5.a06",
            "1.1.0f.5.é6",
            "1.1.0f.5.6.7",
            "1.1.0f.5.h",
            "1.1.0f.5.h3.a4",
            "1.1.0f.5.h3.h3",
            "1.1.0f.5.a4.b4",
            "1.1.0f.5.a4.h3.h3",
            " 1.1.0f.5",
            "1.1.0f.9223372036854775808",
        ] {
            assert_eq!(wrong.parse::<Cursor>(), Err(CursorError), "{wrong:?}");
        }
    }
}
