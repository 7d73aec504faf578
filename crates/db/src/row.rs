use std::fmt;

use rusqlite::types::ValueRef as SqliteRef;
use tokio_postgres::types::{FromSql, Type};

use crate::error::DbError;

/// One row of a query's answer, read by column name or by index from 0.
///
/// A name is looked up in each row, which takes less than reading a text does.
///
/// Every reader fails with [`DbError::Type`] when the column holds another type, and unless it
/// starts with `opt_`, when it holds null.
pub struct Row<'a>(Inner<'a>);

/// A column of a row: its name, or its index from 0.
pub trait ColumnIndex: Copy + fmt::Display {
    /// Its index in this row.
    ///
    /// # Errors
    /// [`DbError::Type`] if the row has no such column.
    fn find(self, row: &Row<'_>) -> Result<usize, DbError>;
}

impl ColumnIndex for usize {
    fn find(self, _: &Row<'_>) -> Result<usize, DbError> {
        Ok(self)
    }
}

impl ColumnIndex for &str {
    fn find(self, row: &Row<'_>) -> Result<usize, DbError> {
        let found = match row.0 {
            Inner::Sqlite(row) => row.as_ref().column_index(self).ok(),
            Inner::Postgres(row) => row
                .columns()
                .iter()
                .position(|column| column.name() == self),
        };
        found.ok_or_else(|| no_column(self))
    }
}

enum Inner<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl<'a> Row<'a> {
    /// An integer.
    pub fn i64(&self, index: impl ColumnIndex) -> Result<i64, DbError> {
        present(index, self.opt_i64(index)?)
    }

    /// An integer or null.
    pub fn opt_i64(&self, index: impl ColumnIndex) -> Result<Option<i64>, DbError> {
        let column = index.find(self)?;
        match self.0 {
            Inner::Sqlite(row) => match sqlite(row, column)? {
                SqliteRef::Null => Ok(None),
                SqliteRef::Integer(value) => Ok(Some(value)),
                other => Err(mismatch(
                    index,
                    "an integer",
                    &other.data_type().to_string(),
                )),
            },
            Inner::Postgres(row) => match *column_type(row, column)? {
                Type::INT8 => postgres(row, column),
                Type::INT4 => Ok(postgres::<Option<i32>>(row, column)?.map(i64::from)),
                Type::INT2 => Ok(postgres::<Option<i16>>(row, column)?.map(i64::from)),
                ref other => Err(mismatch(index, "an integer", other.name())),
            },
        }
    }

    /// A truth value.
    pub fn bool(&self, index: impl ColumnIndex) -> Result<bool, DbError> {
        present(index, self.opt_bool(index)?)
    }

    /// A truth value or null.
    pub fn opt_bool(&self, index: impl ColumnIndex) -> Result<Option<bool>, DbError> {
        let column = index.find(self)?;
        match self.0 {
            Inner::Sqlite(row) => match sqlite(row, column)? {
                SqliteRef::Null => Ok(None),
                SqliteRef::Integer(0) => Ok(Some(false)),
                SqliteRef::Integer(1) => Ok(Some(true)),
                other => Err(mismatch(
                    index,
                    "a truth value",
                    &other.data_type().to_string(),
                )),
            },
            Inner::Postgres(row) => match *column_type(row, column)? {
                Type::BOOL => postgres(row, column),
                ref other => Err(mismatch(index, "a truth value", other.name())),
            },
        }
    }

    /// Text, owned.
    pub fn text(&self, index: impl ColumnIndex) -> Result<String, DbError> {
        self.str(index).map(str::to_owned)
    }

    /// Text or null, owned.
    pub fn opt_text(&self, index: impl ColumnIndex) -> Result<Option<String>, DbError> {
        Ok(self.opt_str(index)?.map(str::to_owned))
    }

    /// Text, borrowed from the row.
    pub fn str(&self, index: impl ColumnIndex) -> Result<&'a str, DbError> {
        present(index, self.opt_str(index)?)
    }

    /// Text or null, borrowed from the row.
    pub fn opt_str(&self, index: impl ColumnIndex) -> Result<Option<&'a str>, DbError> {
        let column = index.find(self)?;
        match self.0 {
            Inner::Sqlite(row) => match sqlite(row, column)? {
                SqliteRef::Null => Ok(None),
                SqliteRef::Text(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) => Ok(Some(text)),
                    Err(_) => Err(mismatch(index, "text", "text that is not UTF-8")),
                },
                other => Err(mismatch(index, "text", &other.data_type().to_string())),
            },
            Inner::Postgres(row) => match *column_type(row, column)? {
                Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => postgres(row, column),
                ref other => Err(mismatch(index, "text", other.name())),
            },
        }
    }

    /// Bytes, borrowed from the row.
    pub fn bytes(&self, index: impl ColumnIndex) -> Result<&'a [u8], DbError> {
        present(index, self.opt_bytes(index)?)
    }

    /// Bytes or null, borrowed from the row.
    pub fn opt_bytes(&self, index: impl ColumnIndex) -> Result<Option<&'a [u8]>, DbError> {
        let column = index.find(self)?;
        match self.0 {
            Inner::Sqlite(row) => match sqlite(row, column)? {
                SqliteRef::Null => Ok(None),
                SqliteRef::Blob(bytes) => Ok(Some(bytes)),
                other => Err(mismatch(index, "bytes", &other.data_type().to_string())),
            },
            Inner::Postgres(row) => match *column_type(row, column)? {
                Type::BYTEA => postgres(row, column),
                ref other => Err(mismatch(index, "bytes", other.name())),
            },
        }
    }

    pub(crate) fn sqlite(row: &'a rusqlite::Row<'a>) -> Row<'a> {
        Row(Inner::Sqlite(row))
    }

    pub(crate) fn postgres(row: &'a tokio_postgres::Row) -> Row<'a> {
        Row(Inner::Postgres(row))
    }
}

fn sqlite<'a>(row: &'a rusqlite::Row<'a>, index: usize) -> Result<SqliteRef<'a>, DbError> {
    row.get_ref(index).map_err(|_| no_column(index))
}

fn column_type(row: &tokio_postgres::Row, index: usize) -> Result<&Type, DbError> {
    row.columns()
        .get(index)
        .map(tokio_postgres::Column::type_)
        .ok_or_else(|| no_column(index))
}

fn postgres<'a, T: FromSql<'a>>(row: &'a tokio_postgres::Row, index: usize) -> Result<T, DbError> {
    row.try_get(index)
        .map_err(|_| mismatch(index, "the declared type", "something else"))
}

fn present<T>(index: impl ColumnIndex, value: Option<T>) -> Result<T, DbError> {
    value.ok_or_else(|| DbError::Type(format!("column {index} is null")))
}

fn mismatch(index: impl ColumnIndex, expected: &str, found: &str) -> DbError {
    DbError::Type(format!(
        "column {index} was read as {expected}, but is {found}"
    ))
}

fn no_column(index: impl ColumnIndex) -> DbError {
    DbError::Type(format!("the row has no column {index}"))
}
