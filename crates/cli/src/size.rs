//! Sizes as people write them, kept in bytes.

use bytesize::ByteSize;
use serde::Deserializer;

use crate::parse::written;

/// Reads `1GiB`, `500 MB`, or a number of bytes.
///
/// # Errors
/// A sentence that says how sizes are written.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let size: Result<ByteSize, _> = text.parse();
    size.map(|size| size.as_u64())
        .map_err(|_| format!("invalid size {text:?}: expected 1GiB, 500MB or 0, for example"))
}

/// A size in a configuration.
///
/// # Errors
/// As for [`parse_bytes`], or if it is neither a text nor a number.
pub fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    written(from, parse_bytes).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("1GiB", 1 << 30),
            ("1.5 GiB", 3 << 29),
            ("500MB", 500_000_000),
            ("4096", 4096),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "-1", "many", "1 elephant", "1GiB of room"] {
            let refused = parse_bytes(text).unwrap_err();
            assert!(refused.contains("expected 1GiB"), "{refused}");
        }
    }
}
