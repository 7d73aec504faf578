//! One segment of a URL's path.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The text as one path segment: every byte that is not unreserved in RFC
/// 3986 is percent-encoded.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Whether the text names a segment at all: URL parsers drop `.` and resolve
/// `..`, encoded or not, so that another path would be asked for.
pub(crate) fn is_usable(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
}

/// Everything but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreserved_bytes_stay() {
        assert_eq!(encoded("Rust_2.0~-"), "Rust_2.0~-");
        assert_eq!(encoded("a/b?c#d%e f"), "a%2Fb%3Fc%23d%25e%20f");
        assert_eq!(encoded("猫"), "%E7%8C%AB");
    }

    #[test]
    fn dots_are_not_a_segment() {
        for text in ["", ".", ".."] {
            assert!(!is_usable(text));
        }
        assert!(is_usable("..."));
    }
}
