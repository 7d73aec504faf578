use crate::field::Field;
use crate::layout::{Layout, TimeUnit};

/// Time and fields that do not make a valid layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Time and fields must fill 64 bits, or 63 and leave the sign bit unused.
    #[error("time and fields fill {bits} bits; make them fill 63 or 64")]
    Width {
        /// The number of bits that they fill.
        bits: u32,
    },
    /// The time has no bits.
    #[error("the time has no bits; give it some")]
    NoTime,
    /// The layout begins before, or ends after, the times that Unix µs in 64 signed bits can
    /// express.
    #[error(
        "the layout's times do not fit Unix microseconds in 64 bits; \
         give it an epoch nearer to 1970 or fewer time bits"
    )]
    Life,
    /// The name of the layout or of a field is invalid: it must have 1 to 32 characters of a to z,
    /// 0 to 9, `_` and `-`. Names become part of file names and of the text of files.
    #[error(
        "invalid name {name:?}: expected 1 to {MAX_NAME} characters of a to z, 0 to 9, \
         '_' and '-'"
    )]
    Name {
        /// The name.
        name: &'static str,
    },
    /// A field must have 1 to 63 bits.
    #[error("the field {field} has {bits} bits; give it 1 to 63, or leave it out")]
    FieldWidth {
        /// The field's name.
        field: &'static str,
        /// The number of bits that it has.
        bits: u8,
    },
}

impl Layout {
    /// Makes a custom layout of 64 bits, written in decimal, with the time above the fields. Names
    /// are 1 to 32 characters of a to z, 0 to 9, `_` and `-`.
    ///
    /// In a `const`, a mistake fails the build:
    ///
    /// ```
    /// use driftline_id::{Field, Layout, TimeUnit};
    ///
    /// const FIELDS: &[Field] = &[Field::node("shard", 4), Field::sequence(18)];
    /// const WIDE: Layout =
    ///     match Layout::custom("wide", TimeUnit::Millisecond, 1_700_000_000_000, 41, FIELDS) {
    ///         Ok(layout) => layout,
    ///         Err(_) => panic!("the fields must fill 63 or 64 bits"),
    ///     };
    /// assert!(WIDE.sign_bit_unused());
    /// ```
    ///
    /// # Errors
    /// [`LayoutError`] if the fields do not fill the bits, the time has no bits or does not fit
    /// Unix µs, or a name or a field's width is invalid.
    pub const fn custom(
        name: &'static str,
        unit: TimeUnit,
        epoch_ms: i64,
        time_bits: u8,
        fields: &'static [Field],
    ) -> Result<Self, LayoutError> {
        let mut bits = time_bits as u32;
        let mut rest = fields;
        if !is_name(name) {
            return Err(LayoutError::Name { name });
        }
        while let [field, tail @ ..] = rest {
            let (name, width) = (field.name(), field.bits());
            if !is_name(name) {
                return Err(LayoutError::Name { name });
            }
            if width == 0 || width > 63 {
                return Err(LayoutError::FieldWidth {
                    field: name,
                    bits: width,
                });
            }
            bits += width as u32;
            rest = tail;
        }
        if time_bits == 0 {
            return Err(LayoutError::NoTime);
        }
        if bits != 63 && bits != 64 {
            return Err(LayoutError::Width { bits });
        }
        let layout = Self::from_parts(name, unit, epoch_ms, time_bits, fields);
        if layout.life_us().is_none() {
            return Err(LayoutError::Life);
        }
        Ok(layout)
    }

    /// The Unix µs of the epoch and of the end, both within 64 signed bits.
    pub(crate) const fn life_us(&self) -> Option<(i64, i64)> {
        let epoch_us = self.epoch_ms() as i128 * 1_000;
        let end_us = epoch_us + (1_i128 << self.time_bits()) * self.unit().us() as i128;
        if epoch_us < i64::MIN as i128 || end_us > i64::MAX as i128 {
            return None;
        }
        Some((epoch_us as i64, end_us as i64))
    }
}

const fn is_name(name: &str) -> bool {
    let mut rest = name.as_bytes();
    if rest.is_empty() || rest.len() > MAX_NAME {
        return false;
    }
    while let [byte, tail @ ..] = rest {
        if !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-') {
            return false;
        }
        rest = tail;
    }
    true
}

const MAX_NAME: usize = 32;
