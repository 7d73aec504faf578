//! IDs in base58, the shortest form that survives being read aloud or typed.
//!
//! The alphabet is Bitcoin's: digits and letters without `0`, `O`, `I` and `l`. An ID is one
//! number here, not a string of bytes, so zero is `1` and nothing else begins with `1`.

use alloc::string::String;

use crate::digits::Alphabet;
use crate::text::ParseIdError;

/// Parses a number of up to 2^64 - 1, at most 11 characters.
pub fn parse(text: &str) -> Result<u64, ParseIdError> {
    if text.is_empty() {
        return Err(ParseIdError::Empty);
    }
    let value = BITCOIN.parse(text, u128::from(u64::MAX), |c| c)?;
    if text.len() > 1 && text.starts_with('1') {
        return Err(ParseIdError::LeadingZero);
    }
    Ok(value as u64)
}

/// Prints without leading zeros.
pub fn print(raw: u64) -> String {
    BITCOIN.print(u128::from(raw), 1)
}

const BITCOIN: Alphabet = Alphabet {
    digits: b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    expected: "1-9, A-Z without I and O, and a-z without l",
};
