use alloc::string::{String, ToString};

use crate::layout::Layout;
use crate::{base32, decimal, hex, seconds, uuid};

/// The text form of a layout's IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextForm {
    /// Decimal digits without leading zeros; see [`decimal`].
    Decimal,
    /// 13 characters of the AT Protocol's sortable base32; see [`base32`].
    SortableBase32,
    /// 26 characters of Crockford's base32; see [`base32`].
    CrockfordBase32,
    /// 32 hexadecimal digits in five groups; see [`uuid`].
    Uuid,
    /// 10 decimal digits of seconds and 32 hexadecimal digits, of which 95 bits count.
    SecondsAndHash,
}

/// Text that is not an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseIdError {
    /// The text is empty.
    #[error("the ID is empty; write its digits")]
    Empty,
    /// A sign precedes the digits.
    #[error("an ID has no sign; leave out the '{sign}'")]
    Sign {
        /// `+` or `-`.
        sign: char,
    },
    /// Zeros precede the first significant digit.
    #[error("the ID begins with digits of value zero; leave them out")]
    LeadingZero,
    /// A character is not a digit of the form.
    #[error("{character:?} at position {position} is not part of an ID here; use {expected}")]
    Character {
        /// The character.
        character: char,
        /// Its position, from 1.
        position: usize,
        /// The characters that are allowed.
        expected: &'static str,
    },
    /// The form has a fixed length, and the text has another.
    #[error("the ID has {found} characters where {expected} are needed; check that it is whole")]
    Length {
        /// The form's length in characters.
        expected: usize,
        /// The text's length in characters.
        found: usize,
    },
    /// The number has more bits than allowed.
    #[error("the ID does not fit {bits} bits; check for extra digits, or choose another layout")]
    TooLarge {
        /// The number of bits allowed.
        bits: u8,
    },
    /// The text does not have the 36 characters of a UUID with hyphens, or 32 without.
    #[error("the UUID has {found} characters; write 36 with hyphens, or 32 without")]
    UuidLength {
        /// The text's length in characters.
        found: usize,
    },
    /// A hyphen is missing or misplaced in a UUID.
    #[error(
        "the UUID's hyphens are misplaced; group its digits 8-4-4-4-12, \
         or write all 32 without hyphens"
    )]
    UuidHyphens,
    /// The UUID does not contain a time as version 7 does.
    #[error(
        "the UUID has version {version} and variant {variant}; \
         only version 7 with variant 2 carries a time here"
    )]
    NotUuidV7 {
        /// The UUID's version field.
        version: u8,
        /// The UUID's two variant bits; RFC 9562 requires 2.
        variant: u8,
    },
}

impl Layout {
    /// Parses the layout's text form, strictly: no sign, spaces or leading zeros.
    ///
    /// Decimal IDs reach 2^64 - 1 even where the layout leaves the sign bit unused. A TID with the
    /// topmost bit set, or a UUID of another version than 7, is rejected.
    ///
    /// # Errors
    /// [`ParseIdError`] if the text is not an ID in the layout's form.
    pub fn parse(&self, text: &str) -> Result<u128, ParseIdError> {
        match self.text_form() {
            TextForm::Decimal => decimal::parse_u64(text).map(u128::from),
            TextForm::SortableBase32 => {
                let raw = u128::from(base32::parse_sortable(text)?);
                self.checked_raw(raw)
            }
            TextForm::CrockfordBase32 => base32::parse_crockford(text),
            TextForm::Uuid => self.checked_raw(uuid::parse(text)?),
            TextForm::SecondsAndHash => seconds::parse(text),
        }
    }

    /// Parses the layout's text form, or else hexadecimal after `0x`, or else decimal.
    ///
    /// A ULID may begin with `0X`, as it is printed in upper case; with `0x` it is hexadecimal.
    ///
    /// # Errors
    /// [`ParseIdError`] if the text is not an ID in any of these forms.
    pub fn parse_any(&self, text: &str) -> Result<u128, ParseIdError> {
        if hex::strip_prefix(text).is_some() && !self.prints_as_hexadecimal(text) {
            return self.checked_raw(hex::parse(text)?);
        }
        self.parse(text).or_else(|error| {
            let raw = decimal::parse_u128(text).map_err(|_| error)?;
            self.checked_raw(raw)
        })
    }

    /// Prints the layout's text form. Bits above the layout's width are dropped.
    pub fn print(&self, raw: u128) -> String {
        let raw = self.within_width(raw);
        match self.text_form() {
            TextForm::Decimal => raw.to_string(),
            TextForm::SortableBase32 => base32::print_sortable(raw as u64),
            TextForm::CrockfordBase32 => base32::print_crockford(raw),
            TextForm::Uuid => uuid::print(raw),
            TextForm::SecondsAndHash => seconds::print(raw),
        }
    }

    /// True if the text is an ID in the layout's own form that begins like hexadecimal.
    pub(crate) fn prints_as_hexadecimal(&self, text: &str) -> bool {
        self.text_form() == TextForm::CrockfordBase32
            && text.starts_with("0X")
            && self.parse(text).is_ok()
    }

    fn checked_raw(&self, raw: u128) -> Result<u128, ParseIdError> {
        match self.text_form() {
            TextForm::Decimal | TextForm::CrockfordBase32 if raw != self.within_width(raw) => {
                Err(ParseIdError::TooLarge {
                    bits: self.width_bits(),
                })
            }
            TextForm::SortableBase32 if !self.contains(raw) => Err(ParseIdError::TooLarge {
                bits: self.used_bits(),
            }),
            TextForm::Uuid if !self.contains(raw) => Err(ParseIdError::NotUuidV7 {
                version: (raw >> 76 & 0xf) as u8,
                variant: (raw >> 62 & 0b11) as u8,
            }),
            _ => Ok(raw),
        }
    }
}
