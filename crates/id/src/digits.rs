use alloc::string::String;

use crate::text::ParseIdError;

/// Digits of a positional notation.
pub(crate) struct Alphabet {
    /// The digits in order of value, ASCII.
    pub(crate) digits: &'static [u8],
    /// The characters to use, for error messages.
    pub(crate) expected: &'static str,
}

impl Alphabet {
    /// The value of `text`. `fold` maps each character to a digit first.
    pub(crate) fn parse(
        &self,
        text: &str,
        max: u128,
        fold: impl Fn(char) -> char,
    ) -> Result<u128, ParseIdError> {
        let base = self.digits.len() as u128;
        let mut value = Some(0_u128);
        for (index, character) in text.chars().enumerate() {
            let digit = self
                .value_of(fold(character))
                .ok_or(ParseIdError::Character {
                    character,
                    position: index + 1,
                    expected: self.expected,
                })?;
            value = value
                .and_then(|value| value.checked_mul(base)?.checked_add(digit))
                .filter(|&value| value <= max);
        }
        value.ok_or(ParseIdError::TooLarge {
            bits: (128 - max.leading_zeros()) as u8,
        })
    }

    /// Prints `value` in at least `min_length` digits.
    pub(crate) fn print(&self, mut value: u128, min_length: usize) -> String {
        let base = self.digits.len() as u128;
        let mut reversed = String::new();
        while value > 0 || reversed.len() < min_length {
            reversed.push(char::from(self.digits[(value % base) as usize]));
            value /= base;
        }
        reversed.chars().rev().collect()
    }

    fn value_of(&self, character: char) -> Option<u128> {
        self.digits
            .iter()
            .position(|&digit| char::from(digit) == character)
            .map(|value| value as u128)
    }
}

/// Rejects text that does not have exactly `expected` characters.
pub(crate) fn check_length(text: &str, expected: usize) -> Result<(), ParseIdError> {
    match text.chars().count() {
        0 => Err(ParseIdError::Empty),
        found if found != expected => Err(ParseIdError::Length { expected, found }),
        _ => Ok(()),
    }
}

/// Rejects a sign, and the first character that is not `allowed`.
pub(crate) fn check_unsigned(
    text: &str,
    expected: &'static str,
    allowed: impl Fn(char) -> bool,
) -> Result<(), ParseIdError> {
    match text.chars().next() {
        None => Err(ParseIdError::Empty),
        Some(sign @ ('+' | '-')) => Err(ParseIdError::Sign { sign }),
        Some(_) => check_characters(text, expected, allowed),
    }
}

/// Rejects the first character that is not `allowed`.
pub(crate) fn check_characters(
    text: &str,
    expected: &'static str,
    allowed: impl Fn(char) -> bool,
) -> Result<(), ParseIdError> {
    match text.chars().enumerate().find(|&(_, c)| !allowed(c)) {
        Some((index, character)) => Err(ParseIdError::Character {
            character,
            position: index + 1,
            expected,
        }),
        None => Ok(()),
    }
}
