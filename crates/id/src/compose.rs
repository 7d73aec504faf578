use crate::field::FieldKind;
use crate::layout::Layout;
use crate::span::TimeError;

/// Values that do not make an ID of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// The layout cannot express the time.
    #[error("{0}")]
    Time(#[from] TimeError),
    /// Too few or too many field values.
    #[error(
        "{found} field values were given, but the layout has {expected} free fields; \
         give one value for each"
    )]
    FieldCount {
        /// The number of fields that the layout leaves free.
        expected: usize,
        /// The number of values given.
        found: usize,
    },
    /// A value does not fit the bits of its field.
    #[error("{value} does not fit the field {field}; give at most {max}")]
    FieldTooLarge {
        /// The field's name.
        field: &'static str,
        /// The value given.
        value: u128,
        /// The largest value that fits.
        max: u128,
    },
}

impl Layout {
    /// Makes the ID of a Unix ms, with a value for each free field from the highest bits to the
    /// lowest. Fixed fields, such as the version and variant of a UUID, take no value.
    ///
    /// # Errors
    /// [`ComposeError`] if the layout cannot express the time, the number of values is wrong, or a
    /// value does not fit its field.
    pub fn compose(&self, unix_ms: i64, values: &[u128]) -> Result<u128, ComposeError> {
        self.compose_at(i128::from(unix_ms) * 1_000, values)
    }

    /// [`compose`](Self::compose) from Unix µs, rounded down to the layout's unit.
    ///
    /// # Errors
    /// The same as those of [`compose`](Self::compose).
    pub fn compose_us(&self, unix_us: i64, values: &[u128]) -> Result<u128, ComposeError> {
        self.compose_at(i128::from(unix_us), values)
    }

    fn compose_at(&self, unix_us: i128, values: &[u128]) -> Result<u128, ComposeError> {
        let expected = self.fields().iter().filter(|f| !f.is_fixed()).count();
        if values.len() != expected {
            return Err(ComposeError::FieldCount {
                expected,
                found: values.len(),
            });
        }
        let mut raw = self.fill(self.ticks_at(unix_us)?, false);
        let free = self
            .placed_fields()
            .filter(|(field, _)| !matches!(field.kind(), FieldKind::Fixed(_)));
        for ((field, shift), &value) in free.zip(values) {
            if value > field.max() {
                return Err(ComposeError::FieldTooLarge {
                    field: field.name(),
                    value,
                    max: field.max(),
                });
            }
            raw |= value << shift;
        }
        Ok(raw)
    }
}
