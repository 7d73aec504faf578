use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

/// A JSON value as its text, for values that pass through without being read. Two are equal if their texts are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Writes a value.
    ///
    /// # Errors
    /// [`serde_json::Error`] if the value cannot be JSON.
    pub fn write(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        to_raw_value(value).map(Self)
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Reads the value.
    ///
    /// # Errors
    /// [`serde_json::Error`] if it is nested too deeply, or a text in it is not Unicode.
    pub fn read(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_str(self.get())
    }
}

impl From<&Value> for RawJson {
    fn from(value: &Value) -> Self {
        // A `Value` is always JSON.
        Self(to_raw_value(value).unwrap_or_default())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl Hash for RawJson {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::SyncedObject;

    #[test]
    fn a_value_passes_through_as_it_was_written() {
        let text = r#"{"key":"post:a","usn":"0","value":{"place":"7","status":{"b":1.50,"a":[]}}}"#;
        let object: SyncedObject = serde_json::from_str(text).expect("an object");
        assert_eq!(serde_json::to_string(&object).expect("JSON"), text);
        let value = object.value.read().expect("a value");
        assert_eq!(value["place"], "7");
        // A `Value` has an order of its own.
        let object: SyncedObject = serde_json::from_value(json!({
            "key": "post:a", "usn": "0", "value": value
        }))
        .expect("an object");
        assert_eq!(object.value.read().expect("a value"), value);
        let invalid = r#"{"key":"post:a","usn":"0","value":{"a":tru}}"#;
        assert!(serde_json::from_str::<SyncedObject>(invalid).is_err());
    }
}
