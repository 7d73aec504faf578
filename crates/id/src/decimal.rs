//! IDs as decimal digits, in their one canonical form: no sign, no leading zeros, no spaces.

use core::str::FromStr;

use crate::digits::check_unsigned;
use crate::text::ParseIdError;

/// Parses a number of up to 2^64 - 1.
pub fn parse_u64(text: &str) -> Result<u64, ParseIdError> {
    parse(text, 64)
}

/// Parses a number of up to 2^128 - 1.
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
