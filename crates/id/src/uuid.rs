//! IDs as UUID text (RFC 9562, section 4).

use alloc::format;
use alloc::string::String;

use crate::digits::check_characters;
use crate::text::ParseIdError;

/// Parses a UUID of any version, in either case: 36 characters with hyphens, or 32 without.
pub fn parse(text: &str) -> Result<u128, ParseIdError> {
    let hyphenated = match text.chars().count() {
        0 => return Err(ParseIdError::Empty),
        32 => false,
        36 => true,
        found => return Err(ParseIdError::UuidLength { found }),
    };
    let is_hyphen = |index: usize| hyphenated && HYPHENS.contains(&index);
    check_characters(text, EXPECTED, |c| c.is_ascii_hexdigit() || c == '-')?;
    let mut raw = 0;
    for (index, character) in text.chars().enumerate() {
        raw = match character.to_digit(16) {
            Some(digit) if !is_hyphen(index) => raw << 4 | u128::from(digit),
            None if is_hyphen(index) => raw,
            _ => return Err(ParseIdError::UuidHyphens),
        };
    }
    Ok(raw)
}

/// Prints 36 lower-case characters with hyphens.
pub fn print(raw: u128) -> String {
    let group = |shift: u8, digits: u8| (raw >> shift) & ((1 << (4 * digits)) - 1);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        group(96, 8),
        group(80, 4),
        group(64, 4),
        group(48, 4),
        group(0, 12),
    )
}

const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const EXPECTED: &str = "the digits 0-9 and a-f, and hyphens";
