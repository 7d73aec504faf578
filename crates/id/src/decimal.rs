//! IDs as decimal digits in their only canonical form: no sign, no leading zeros, no spaces.

use core::str::FromStr;

use crate::digits::check_unsigned;
use crate::text::ParseIdError;

/// Parses a number of up to 2^64 - 1.
///
/// # Errors
/// [`ParseIdError`] if `text` is empty, is not in the canonical form, or is too large.
pub fn parse_u64(text: &str) -> Result<u64, ParseIdError> {
    parse(text, 64)
}

/// Parses a number of up to 2^128 - 1.
///
/// # Errors
/// The same as those of [`parse_u64`].
pub fn parse_u128(text: &str) -> Result<u128, ParseIdError> {
    parse(text, 128)
}

fn parse<N: FromStr>(text: &str, bits: u8) -> Result<N, ParseIdError> {
    check_unsigned(text, "the digits 0-9", |c| c.is_ascii_digit())?;
    if text.len() > 1 && text.starts_with('0') {
        return Err(ParseIdError::LeadingZero);
    }
    text.parse().map_err(|_| ParseIdError::TooLarge { bits })
}
