//! IDs as hexadecimal digits.

use alloc::format;
use alloc::string::String;

use crate::digits::check_unsigned;
use crate::text::ParseIdError;

/// Parses a number of up to 2^128 - 1, in either case, with or without `0x` before it. Leading
/// zeros are allowed, since hexadecimal IDs are often padded.
///
/// # Errors
/// [`ParseIdError`] if `text` has no digits, has a sign or another character, or is too large.
pub fn parse(text: &str) -> Result<u128, ParseIdError> {
    let digits = strip_prefix(text).unwrap_or(text);
    check_unsigned(digits, "the digits 0-9 and a-f", |c| c.is_ascii_hexdigit())?;
    u128::from_str_radix(digits, 16).map_err(|_| ParseIdError::TooLarge { bits: 128 })
}

/// Prints in lower case after `0x`, without padding.
pub fn print(raw: u128) -> String {
    format!("{raw:#x}")
}

pub(crate) fn strip_prefix(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}
