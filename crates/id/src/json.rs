use alloc::string::ToString;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use crate::decoded::{Decoded, FieldValue};
use crate::typed::Id;

impl<T> Serialize for Id<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T> Deserialize<'de> for Id<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(IdVisitor(PhantomData))
    }
}

/// `layout`, `id` (decimal), `hex`, `text`, `time_ms`, `time_us`, `fields`. Fields of more than
/// 53 bits are strings, the others numbers.
impl Serialize for Decoded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Decoded", 7)?;
        object.serialize_field("layout", self.layout.name())?;
        object.serialize_field("id", &self.decimal())?;
        object.serialize_field("hex", &self.hex())?;
        object.serialize_field("text", &self.text())?;
        object.serialize_field("time_ms", &self.time_ms)?;
        object.serialize_field("time_us", &self.time_us)?;
        object.serialize_field("fields", &Fields(&self.fields))?;
        object.end()
    }
}

struct IdVisitor<T>(PhantomData<fn() -> T>);

impl<T> Visitor<'_> for IdVisitor<T> {
    type Value = Id<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ID as a string of digits (numbers above 2^53 lose digits in JSON)")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Id<T>, E> {
        text.parse().map_err(E::custom)
    }
}

struct Fields<'a>(&'a [FieldValue]);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for field in self.0 {
            match u64::try_from(field.value) {
                Ok(value) if field.field.bits() <= EXACT_NUMBER_BITS => {
                    map.serialize_entry(field.name(), &value)?;
                }
                _ => map.serialize_entry(field.name(), &field.value.to_string())?,
            }
        }
        map.end()
    }
}

/// JSON readers with 64-bit floats keep integers of up to 53 bits exact.
const EXACT_NUMBER_BITS: u8 = 53;
