/// A JSON number of any size and precision, in a form that all its spellings share.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    /// Never true for zero.
    pub(crate) is_negative: bool,
    /// Without zeros at either end; empty for zero.
    pub(crate) digits: String,
    /// The power of ten of the last digit.
    pub(crate) exponent: i64,
}

impl Decimal {
    /// Parses a number; `None` if the JSON is another value, or its exponent does not fit.
    pub(crate) fn parse(json: &str) -> Option<Self> {
        let (is_negative, unsigned) = match json.strip_prefix('-') {
            Some(unsigned) => (true, unsigned),
            None => (false, json),
        };
        if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let kept = digits.trim_end_matches('0');
        let cut = i64::try_from(digits.len() - kept.len()).ok()?;
        let digits = kept.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self {
                is_negative: false,
                digits,
                exponent: 0,
            });
        }
        let exponent = exponent.map_or(Some(0), |exponent| exponent.parse::<i64>().ok())?;
        let fraction = i64::try_from(fraction.len()).ok()?;
        Some(Self {
            is_negative,
            exponent: exponent.checked_sub(fraction)?.checked_add(cut)?,
            digits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_number_are_equal() {
        for spellings in [
            &["1", "1.0", "1e0", "1E+0", "10e-1", "0.1e1", "100.00e-2"][..],
            &["0", "-0", "0.0", "-0.00e17", "0e99999999999999999999"],
            &["1e5", "1E5", "100000", "100000.0"],
            &["-12.5", "-125e-1", "-1.25E1", "-12.50"],
            &["1e400", "10e399", "0.1e401"],
            &["18446744073709551616", "18446744073709551616.0"],
        ] {
            let first = Decimal::parse(spellings[0]);
            assert!(first.is_some());
            for spelling in spellings {
                assert_eq!(Decimal::parse(spelling), first, "{spelling}");
            }
        }
    }

    #[test]
    fn neighbours_that_a_float_would_round_together_differ() {
        for (a, b) in [
            ("0.9726443768996961", "0.97264437689969611"),
            ("18446744073709551616", "18446744073709551617"),
            ("1e400", "1e401"),
            ("1e-400", "0"),
            ("1", "-1"),
        ] {
            assert_ne!(Decimal::parse(a), Decimal::parse(b), "{a} {b}");
        }
    }

    #[test]
    fn other_values_are_no_numbers() {
        for json in [
            "null",
            "true",
            "\"1\"",
            "[1]",
            "{}",
            "",
            "-",
            "1e99999999999999999999",
        ] {
            assert_eq!(Decimal::parse(json), None, "{json}");
        }
    }
}
