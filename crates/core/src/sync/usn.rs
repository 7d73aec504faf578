use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// An update sequence number of a library. The first is 1. In JSON it is a decimal text, since JSON numbers lose digits
/// above 2^53.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usn(u64);

impl Usn {
    /// The USN of something that has never been stored.
    pub const NONE: Self = Self(0);

    /// The USN with a number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Usn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Usn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Usn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_canonical =
            text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
        let number = text.parse().ok().filter(|_| is_canonical);
        number.map(Self).ok_or_else(|| {
            D::Error::custom(format_args!(
                "{text:?} is not a USN; expected decimal digits"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usn_is_a_decimal_text() {
        let largest = Usn::new(u64::MAX);
        let text = serde_json::to_string(&largest).expect("JSON");
        assert_eq!(text, "\"18446744073709551615\"");
        assert_eq!(serde_json::from_str::<Usn>(&text).expect("a USN"), largest);
        for wrong in [
            "1",
            "\"\"",
            "\"01\"",
            "\"-1\"",
            "\"+1\"",
            "\"18446744073709551616\"",
        ] {
            assert!(serde_json::from_str::<Usn>(wrong).is_err(), "{wrong}");
        }
    }
}
