use std::error::Error;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::batch::Column;
use crate::value::ValueRef;

/// A parameter, encoded as the type that the server inferred.
#[derive(Debug)]
pub(super) struct Param<'a>(pub(super) ValueRef<'a>);

impl Param<'_> {
    /// The type to declare if the server is not asked for its own. For null, the server infers one.
    pub(super) fn own_type(&self) -> Type {
        match self.0 {
            ValueRef::Null => Type::UNKNOWN,
            ValueRef::I64(_) => Type::INT8,
            ValueRef::Text(_) => Type::TEXT,
            ValueRef::Blob(_) => Type::BYTEA,
            ValueRef::Bool(_) => Type::BOOL,
            ValueRef::List(Column::I64(_) | Column::Counted(..)) => Type::INT8_ARRAY,
            ValueRef::List(Column::Text(_)) => Type::TEXT_ARRAY,
            ValueRef::List(Column::Bool(_)) => Type::BOOL_ARRAY,
        }
    }
}

/// A parameter as it is sent. Its source need not live until then.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) kind: Type,
    /// `None` for null.
    bytes: Option<BytesMut>,
}

type Written = Result<IsNull, Box<dyn Error + Sync + Send>>;

impl Encoded {
    pub(super) fn encode(
        param: &Param<'_>,
        kind: Type,
    ) -> Result<Encoded, Box<dyn Error + Sync + Send>> {
        let mut bytes = BytesMut::new();
        let bytes = match param.to_sql(&kind, &mut bytes)? {
            IsNull::Yes => None,
            IsNull::No => Some(bytes),
        };
        Ok(Encoded { kind, bytes })
    }
}

impl ToSql for Encoded {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Written {
        let Some(bytes) = &self.bytes else {
            return Ok(IsNull::Yes);
        };
        out.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl ToSql for Param<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Written {
        match (self.0, kind) {
            (ValueRef::Null, _) => Ok(IsNull::Yes),
            (ValueRef::I64(value), &Type::INT8) => value.to_sql(kind, out),
            (ValueRef::I64(value), &Type::INT4) => i32::try_from(value)?.to_sql(kind, out),
            (ValueRef::Text(value), kind) if <&str as ToSql>::accepts(kind) => {
                value.to_sql(kind, out)
            }
            (ValueRef::Bool(value), &Type::BOOL) => value.to_sql(kind, out),
            (ValueRef::Blob(value), &Type::BYTEA) => value.to_sql(kind, out),
            (
                ValueRef::List(Column::I64(values) | Column::Counted(values, _)),
                &Type::INT8_ARRAY,
            ) => values.to_sql(kind, out),
            (ValueRef::List(Column::Text(values)), &Type::TEXT_ARRAY) => values.to_sql(kind, out),
            (ValueRef::List(Column::Bool(values)), &Type::BOOL_ARRAY) => values.to_sql(kind, out),
            (value, kind) => {
                let (given, expected) = (value.kind(), kind.name());
                Err(format!("{given} was given where the statement expects {expected}").into())
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
