//! IDs in base32: the sortable alphabet of Bluesky TIDs and the one of Crockford in ULIDs.
//!
//! Both write every digit of the full width, so that text sorts as the numbers do.

use alloc::string::String;

use crate::digits::{Alphabet, check_length};
use crate::text::ParseIdError;

/// Parses 13 sortable base32 characters, lower case, up to 2^64 - 1.
///
/// Source: AT Protocol specification, "Timestamp Identifiers". A TID also leaves the topmost bit
/// zero: [`Layout::TID`](crate::Layout::TID) checks that.
///
/// # Errors
/// [`ParseIdError`] if `text` is empty, has another length or contains another character.
pub fn parse_sortable(text: &str) -> Result<u64, ParseIdError> {
    check_length(text, SORTABLE_LENGTH)?;
    let value = SORTABLE.parse(text, u128::from(u64::MAX), |c| c)?;
    Ok(value as u64)
}

/// Prints 13 sortable base32 characters.
pub fn print_sortable(raw: u64) -> String {
    SORTABLE.print(u128::from(raw), SORTABLE_LENGTH)
}

/// Parses 26 Crockford base32 characters, up to 2^128 - 1. Case does not matter; `I` and `L` read
/// as 1, `O` as 0.
///
/// Source: ulid/spec and Crockford's "Base 32".
///
/// # Errors
/// [`ParseIdError`] if `text` is empty, has another length, contains another character or is above
/// 2^128 - 1.
pub fn parse_crockford(text: &str) -> Result<u128, ParseIdError> {
    check_length(text, CROCKFORD_LENGTH)?;
    CROCKFORD.parse(text, u128::MAX, |c| match c.to_ascii_uppercase() {
        'I' | 'L' => '1',
        'O' => '0',
        upper => upper,
    })
}

/// Prints 26 Crockford base32 characters, upper case.
pub fn print_crockford(raw: u128) -> String {
    CROCKFORD.print(raw, CROCKFORD_LENGTH)
}

const SORTABLE_LENGTH: usize = 13;
const CROCKFORD_LENGTH: usize = 26;

const SORTABLE: Alphabet = Alphabet {
    digits: b"234567abcdefghijklmnopqrstuvwxyz",
    expected: "2-7 and lower-case a-z",
};

const CROCKFORD: Alphabet = Alphabet {
    digits: b"0123456789ABCDEFGHJKMNPQRSTVWXYZ",
    expected: "0-9 and A-Z without U",
};
