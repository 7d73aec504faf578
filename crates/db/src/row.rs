use std::error::Error;
use std::fmt;

use rusqlite::types::ValueRef as SqliteRef;
use tokio_postgres::types::{FromSql, Type};

use crate::error::DbError;
use crate::value::ValueRef;

/// One row of a query's answer, read by column name or by index from 0.
///
/// A name is looked up in each row, which takes less than reading a text does.
///
/// Every reader fails with [`DbError::Type`] when the column holds another type, and unless it
/// starts with `opt_`, when it holds null.
pub struct Row<'a>(Inner<'a>);

/// A column of a row: its name, or its index from 0.
pub trait ColumnIndex:
    Copy + fmt::Display + rusqlite::RowIndex + tokio_postgres::row::RowIndex
{
}

impl ColumnIndex for usize {}

impl ColumnIndex for &str {}

enum Inner<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl<'a> Row<'a> {
    /// An integer.
    pub fn i64(&self, column: impl ColumnIndex) -> Result<i64, DbError> {
        present(column, self.opt_i64(column)?)
    }

    /// An integer or null.
    pub fn opt_i64(&self, column: impl ColumnIndex) -> Result<Option<i64>, DbError> {
        self.read(column, "an integer", |value| match value {
            ValueRef::I64(value) => Some(value),
            _ => None,
        })
    }

    /// A truth value.
    pub fn bool(&self, column: impl ColumnIndex) -> Result<bool, DbError> {
        present(column, self.opt_bool(column)?)
    }

    /// A truth value or null.
    pub fn opt_bool(&self, column: impl ColumnIndex) -> Result<Option<bool>, DbError> {
        self.read(column, "a truth value", |value| match value {
            ValueRef::Bool(value) => Some(value),
            ValueRef::I64(value @ 0..=1) if matches!(self.0, Inner::Sqlite(_)) => Some(value == 1),
            _ => None,
        })
    }

    /// Text, owned.
    pub fn text(&self, column: impl ColumnIndex) -> Result<String, DbError> {
        self.str(column).map(str::to_owned)
    }

    /// Text or null, owned.
    pub fn opt_text(&self, column: impl ColumnIndex) -> Result<Option<String>, DbError> {
        Ok(self.opt_str(column)?.map(str::to_owned))
    }

    /// Text, borrowed from the row.
    pub fn str(&self, column: impl ColumnIndex) -> Result<&'a str, DbError> {
        present(column, self.opt_str(column)?)
    }

    /// Text or null, borrowed from the row.
    pub fn opt_str(&self, column: impl ColumnIndex) -> Result<Option<&'a str>, DbError> {
        self.read(column, "text", |value| match value {
            ValueRef::Text(value) => Some(value),
            _ => None,
        })
    }

    /// Bytes, owned.
    pub fn bytes(&self, column: impl ColumnIndex) -> Result<Vec<u8>, DbError> {
        let bytes = self.read(column, "bytes", |value| match value {
            ValueRef::Blob(value) => Some(value.to_vec()),
            _ => None,
        })?;
        present(column, bytes)
    }

    pub(crate) fn sqlite(row: &'a rusqlite::Row<'a>) -> Row<'a> {
        Row(Inner::Sqlite(row))
    }

    pub(crate) fn postgres(row: &'a tokio_postgres::Row) -> Row<'a> {
        Row(Inner::Postgres(row))
    }

    /// The column's value by `as_type`, which gives `None` for other types than the `expected` one.
    fn read<T>(
        &self,
        column: impl ColumnIndex,
        expected: &str,
        as_type: impl FnOnce(ValueRef<'a>) -> Option<T>,
    ) -> Result<Option<T>, DbError> {
        let value = match self.0 {
            Inner::Sqlite(row) => match row.get_ref(column) {
                Ok(value) => of_sqlite(value),
                Err(_) => Err("missing".to_owned()),
            },
            Inner::Postgres(row) => match row.try_get(column) {
                Ok(OfPostgres(value)) => Ok(value),
                Err(error) => Err(error.source().map_or("missing".into(), ToString::to_string)),
            },
        };
        let found = match value {
            Ok(ValueRef::Null) => return Ok(None),
            Ok(value) => match as_type(value) {
                Some(value) => return Ok(Some(value)),
                None => value.kind().to_owned(),
            },
            Err(found) => found,
        };
        Err(DbError::Type(format!(
            "column {column} was read as {expected}, but is {found}"
        )))
    }
}

fn of_sqlite(value: SqliteRef<'_>) -> Result<ValueRef<'_>, String> {
    match value {
        SqliteRef::Null => Ok(ValueRef::Null),
        SqliteRef::Integer(value) => Ok(ValueRef::I64(value)),
        SqliteRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(ValueRef::Text(text)),
            Err(_) => Err("text that is not UTF-8".to_owned()),
        },
        SqliteRef::Blob(bytes) => Ok(ValueRef::Blob(bytes)),
        SqliteRef::Real(_) => Err(value.data_type().to_string()),
    }
}

struct OfPostgres<'a>(ValueRef<'a>);

impl<'a> FromSql<'a> for OfPostgres<'a> {
    fn from_sql(kind: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(OfPostgres(match *kind {
            Type::INT8 => ValueRef::I64(FromSql::from_sql(kind, bytes)?),
            Type::INT4 => ValueRef::I64(i32::from_sql(kind, bytes)?.into()),
            Type::BOOL => ValueRef::Bool(FromSql::from_sql(kind, bytes)?),
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => {
                ValueRef::Text(FromSql::from_sql(kind, bytes)?)
            }
            Type::BYTEA => ValueRef::Blob(FromSql::from_sql(kind, bytes)?),
            ref other => return Err(other.name().into()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(OfPostgres(ValueRef::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn present<T>(column: impl ColumnIndex, value: Option<T>) -> Result<T, DbError> {
    value.ok_or_else(|| DbError::Type(format!("column {column} is null")))
}
