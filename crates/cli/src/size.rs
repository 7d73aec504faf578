//! Sizes as people write them.

/// Reads `64MiB`, `500 kB`, `2GiB`, or a number of bytes.
///
/// # Errors
/// A sentence that says how sizes are written.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let invalid = || {
        format!("invalid size {text:?}: expected 64MiB, 500kB or 2GiB, for example, from 1 byte on")
    };
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number.parse().map_err(|_| invalid())?;
    let factor = match &*unit.trim().to_ascii_lowercase() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err(invalid()),
    };
    let bytes = number.checked_mul(factor).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("64MiB", 64 << 20),
            ("500 kB", 500_000),
            ("2g", 2 << 30),
            ("17", 17),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes));
        }
        for text in [
            "",
            "0",
            "MiB",
            "-1",
            "1.5MiB",
            "9 parsecs",
            "99999999999GiB",
        ] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
