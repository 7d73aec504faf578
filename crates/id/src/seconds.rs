//! IDs as seconds and a hash: 10 decimal digits, then 32 hexadecimal ones.

use alloc::format;
use alloc::string::String;

use crate::digits::{check_characters, check_length};
use crate::text::ParseIdError;

/// Parses 33 bits of seconds above the first 95 bits of the hash.
pub(crate) fn parse(text: &str) -> Result<u128, ParseIdError> {
    check_length(text, SECONDS + HASH)?;
    check_characters(text, EXPECTED, |c| c.is_ascii_hexdigit())?;
    let (seconds, hash) = text.split_at(SECONDS);
    check_characters(seconds, EXPECTED, |c| c.is_ascii_digit())?;
    let too_large = |_| ParseIdError::TooLarge { bits: 33 };
    let seconds: u128 = seconds.parse().map_err(too_large)?;
    let hash = u128::from_str_radix(hash, 16).map_err(too_large)?;
    if seconds >> 33 > 0 {
        return Err(ParseIdError::TooLarge { bits: 33 });
    }
    Ok(seconds << 95 | hash >> 33)
}

/// Prints 42 characters. The 33 bits of the hash that a raw value lacks are zero.
pub(crate) fn print(raw: u128) -> String {
    format!("{:010}{:032x}", raw >> 95, raw << 33)
}

const SECONDS: usize = 10;
const HASH: usize = 32;
const EXPECTED: &str = "10 decimal digits, then 32 of 0-9 and a-f";
