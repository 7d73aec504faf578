use crate::batch::Column;
use crate::error::DbError;

/// A parameter's value, borrowed.
///
/// Times are Unix milliseconds in [`ValueRef::I64`]; JSON is [`ValueRef::Text`].
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// SQL's null.
    Null,
    /// A 64-bit integer.
    I64(i64),
    /// Text without NUL characters.
    Text(&'a str),
    /// Bytes of any kind.
    Blob(&'a [u8]),
    /// A boolean.
    Bool(bool),
    /// A list, for `{in $n}`.
    List(&'a Column<'a>),
}

/// A type that can be a statement's parameter.
pub trait ToValue {
    /// The value to send.
    fn to_value(&self) -> ValueRef<'_>;
}

impl ValueRef<'_> {
    /// Its type, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            ValueRef::Null => "null",
            ValueRef::I64(_) => "an integer",
            ValueRef::Text(_) => "text",
            ValueRef::Blob(_) => "bytes",
            ValueRef::Bool(_) => "a truth value",
            ValueRef::List(_) => "a list",
        }
    }

    /// Rejects values that one of the databases cannot store, before they reach either.
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

/// Implements [`ToValue`] for types, each with a function from a reference to its value.
macro_rules! values {
    ($($kind:ty => $value:expr),* $(,)?) => {$(
        impl ToValue for $kind {
            fn to_value(&self) -> ValueRef<'_> {
                let value: fn(&$kind) -> ValueRef<'_> = $value;
                value(self)
            }
        }
    )*};
}

values! {
    i64 => |n| ValueRef::I64(*n),
    i32 => |n| ValueRef::I64(i64::from(*n)),
    u32 => |n| ValueRef::I64(i64::from(*n)),
    bool => |is| ValueRef::Bool(*is),
    str => |text| ValueRef::Text(text),
    String => |text| ValueRef::Text(text),
    Vec<u8> => |bytes| ValueRef::Blob(bytes),
}

impl ToValue for Column<'_> {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::List(self)
    }
}
