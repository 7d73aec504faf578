//! IDs as UUID text (RFC 9562, section 4).

use alloc::format;
use alloc::string::String;

use crate::digits::check_characters;
use crate::text::ParseIdError;

/// Parses a UUID of any version, in either case: 36 characters with hyphens, or 32 without.
///
/// # Errors
/// [`ParseIdError`] if the length is wrong, a character is not hexadecimal, or the hyphens are
/// misplaced.
pub fn parse(text: &str) -> Result<u128, ParseIdError> {
    match text.chars().count() {
        0 => return Err(ParseIdError::Empty),
        32 | 36 => check_characters(text, EXPECTED, |c| c.is_ascii_hexdigit() || c == '-')?,
        found => return Err(ParseIdError::UuidLength { found }),
    }
    let groups = text.split('-').map(str::len);
    if !groups.clone().eq([32]) && !groups.eq(GROUPS) {
        return Err(ParseIdError::UuidHyphens);
    }
    u128::from_str_radix(&text.replace('-', ""), 16).map_err(|_| ParseIdError::UuidHyphens)
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

const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
const EXPECTED: &str = "the digits 0-9 and a-f, and hyphens";
