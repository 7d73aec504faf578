use crate::batch::Column;
use crate::error::DbError;

/// A value of a row or a parameter, owned.
///
/// Times are Unix milliseconds in [`Value::I64`]; JSON is [`Value::Text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// SQL's null.
    Null,
    /// A 64-bit integer.
    I64(i64),
    /// Text without NUL characters.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
    /// A truth value; SQLite holds it as 0 or 1.
    Bool(bool),
}

/// A parameter's value, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// SQL's null.
    Null,
    /// A 64-bit integer.
    I64(i64),
    /// Text without NUL characters.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
    /// A truth value.
    Bool(bool),
    /// A list, for `{in $n}`.
    List(&'a Column<'a>),
}

/// What can be a statement's parameter.
pub trait ToValue {
    /// The value to send.
    fn to_value(&self) -> ValueRef<'_>;
}

impl ValueRef<'_> {
    /// Refuses what one of the databases could not hold, before it reaches either.
    pub(crate) fn check(&self) -> Result<(), DbError> {
        match self {
            ValueRef::Text(text) => check_text(text),
            ValueRef::List(column) => column.check(),
            _ => Ok(()),
        }
    }
}

pub(crate) fn check_text(text: &str) -> Result<(), DbError> {
    if text.as_bytes().contains(&0) {
        Err(DbError::NulInText)
    } else {
        Ok(())
    }
}

impl ToValue for Value {
    fn to_value(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::I64(value) => ValueRef::I64(*value),
            Value::Text(value) => ValueRef::Text(value),
            Value::Blob(value) => ValueRef::Blob(value),
            Value::Bool(value) => ValueRef::Bool(*value),
        }
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> ValueRef<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> ValueRef<'_> {
        self.as_ref().map_or(ValueRef::Null, ToValue::to_value)
    }
}

macro_rules! integers {
    ($($kind:ty),*) => {$(
        impl ToValue for $kind {
            fn to_value(&self) -> ValueRef<'_> {
                ValueRef::I64(i64::from(*self))
            }
        }

        impl From<$kind> for Value {
            fn from(value: $kind) -> Value {
                Value::I64(i64::from(value))
            }
        }
    )*};
}

integers!(i64, i32, u32, i16, u16, u8);

impl ToValue for bool {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Bool(*self)
    }
}

impl ToValue for str {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(self)
    }
}

impl ToValue for String {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(self)
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Blob(self)
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Blob(self)
    }
}

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Blob(self)
    }
}

impl ToValue for Column<'_> {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::List(self)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Value {
        Value::Blob(value.to_vec())
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Value {
        Value::Blob(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}
