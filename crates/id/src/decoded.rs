use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::field::Field;
use crate::hex;
use crate::layout::Layout;

/// An ID split into its time and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decoded {
    /// The layout by which the ID was read.
    pub layout: Layout,
    /// The ID itself.
    pub raw: u128,
    /// The ID's time in Unix ms, rounded down.
    pub time_ms: i64,
    /// The ID's time in Unix µs.
    pub time_us: i64,
    /// The fields below the time, from the highest bits to the lowest, fixed ones included.
    pub fields: Vec<FieldValue>,
}

/// A field of a [`Decoded`] ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldValue {
    /// The field.
    pub field: Field,
    /// Its value.
    pub value: u128,
}

impl Layout {
    /// Splits an ID into its time and fields. Bits above the layout's width are dropped.
    pub fn decode(&self, raw: u128) -> Decoded {
        let raw = self.within_width(raw);
        let fields = self
            .placed_fields()
            .map(|(&field, shift)| FieldValue {
                field,
                value: (raw >> shift) & field.max(),
            })
            .collect();
        Decoded {
            layout: *self,
            raw,
            time_ms: self.time_ms(raw),
            time_us: self.time_us(raw),
            fields,
        }
    }
}

impl Decoded {
    /// The value of the field called `name`.
    pub fn field(&self, name: &str) -> Option<u128> {
        self.fields
            .iter()
            .find(|value| value.name() == name)
            .map(|value| value.value)
    }

    /// The ID in decimal.
    pub fn decimal(&self) -> String {
        self.raw.to_string()
    }

    /// The ID in hexadecimal, after `0x`.
    pub fn hex(&self) -> String {
        hex::print(self.raw)
    }

    /// The ID in its layout's text form.
    pub fn text(&self) -> String {
        self.layout.print(self.raw)
    }
}

impl FieldValue {
    /// The field's name.
    pub const fn name(&self) -> &'static str {
        self.field.name()
    }
}
