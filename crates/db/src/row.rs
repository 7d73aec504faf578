use rusqlite::types::ValueRef as SqliteRef;
use tokio_postgres::types::{FromSql, Type};

use crate::error::DbError;

/// One row of a query's answer, read by column index from 0.
///
/// Every reader fails with [`DbError::Type`] when the column holds another type, and unless it
/// starts with `opt_`, when it holds null.
pub struct Row<'a>(Inner<'a>);

enum Inner<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl<'a> Row<'a> {
    /// An integer.
    pub fn i64(&self, index: usize) -> Result<i64, DbError> {
        present(index, self.opt_i64(index)?)
    }

    /// An integer or null.
    pub fn opt_i64(&self, index: usize) -> Result<Option<i64>, DbError> {
        match self.0 {
            Inner::Sqlite(row) => match sqlite(row, index)? {
                SqliteRef::Null => Ok(None),
                SqliteRef::Integer(value) => Ok(Some(value)),
                other => Err(mismatch(
                    index,
                    "an integer",
                    &other.data_type().to_string(),
                )),
            },
            Inner::Postgres(row) => match *column_type(row, index)? {
                Type::INT8 => postgres(row, index),
                Type::INT4 => Ok(postgres::<Option<i32>>(row, index)?.map(i64::from)),
                Type::INT2 => Ok(postgres::<Option<i16>>(row, index)?.map(i64::from)),
                ref other => Err(mismatch(index, "an integer", other.name())),
            },
        }
    }

    /// A truth value.
    pub fn bool(&self, index: usize) -> Result<bool, DbError> {
        present(index, self.opt_bool(index)?)
    }

    /// A truth value or null.
    pub fn opt_bool(&self, index: usize) -> Result<Option<bool>, DbError> {
        match self.0 {
            Inner::Sqlite(row) => match sqlite(row, index)? {
                SqliteRef::Null => Ok(None),
                SqliteRef::Integer(0) => Ok(Some(false)),
                SqliteRef::Integer(1) => Ok(Some(true)),
                other => Err(mismatch(
                    index,
                    "a truth value",
                    &other.data_type().to_string(),
                )),
            },
            Inner::Postgres(row) => match *column_type(row, index)? {
                Type::BOOL => postgres(row, index),
                ref other => Err(mismatch(index, "a truth value", other.name())),
            },
        }
    }

    /// Text, owned.
    pub fn text(&self, index: usize) -> Result<String, DbError> {
        self.str(index).map(str::to_owned)
    }

    /// Text or null, owned.
    pub fn opt_text(&self, index: usize) -> Result<Option<String>, DbError> {
        Ok(self.opt_str(index)?.map(str::to_owned))
    }

    /// Text, borrowed from the row.
    pub fn str(&self, index: usize) -> Result<&'a str, DbError> {
        present(index, self.opt_str(index)?)
    }

    /// Text or null, borrowed from the row.
    pub fn opt_str(&self, index: usize) -> Result<Option<&'a str>, DbError> {
        match self.0 {
            Inner::Sqlite(row) => match sqlite(row, index)? {
                SqliteRef::Null => Ok(None),
                SqliteRef::Text(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) => Ok(Some(text)),
                    Err(_) => Err(mismatch(index, "text", "text that is not UTF-8")),
                },
                other => Err(mismatch(index, "text", &other.data_type().to_string())),
            },
            Inner::Postgres(row) => match *column_type(row, index)? {
                Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => postgres(row, index),
                ref other => Err(mismatch(index, "text", other.name())),
            },
        }
    }

    /// Bytes, owned.
    pub fn blob(&self, index: usize) -> Result<Vec<u8>, DbError> {
        self.bytes(index).map(<[u8]>::to_vec)
    }

    /// Bytes or null, owned.
    pub fn opt_blob(&self, index: usize) -> Result<Option<Vec<u8>>, DbError> {
        Ok(self.opt_bytes(index)?.map(<[u8]>::to_vec))
    }

    /// Bytes, borrowed from the row.
    pub fn bytes(&self, index: usize) -> Result<&'a [u8], DbError> {
        present(index, self.opt_bytes(index)?)
    }

    /// Bytes or null, borrowed from the row.
    pub fn opt_bytes(&self, index: usize) -> Result<Option<&'a [u8]>, DbError> {
        match self.0 {
            Inner::Sqlite(row) => match sqlite(row, index)? {
                SqliteRef::Null => Ok(None),
                SqliteRef::Blob(bytes) => Ok(Some(bytes)),
                other => Err(mismatch(index, "bytes", &other.data_type().to_string())),
            },
            Inner::Postgres(row) => match *column_type(row, index)? {
                Type::BYTEA => postgres(row, index),
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

fn present<T>(index: usize, value: Option<T>) -> Result<T, DbError> {
    value.ok_or_else(|| DbError::Type(format!("column {index} is null")))
}

fn mismatch(index: usize, expected: &str, found: &str) -> DbError {
    DbError::Type(format!(
        "column {index} was read as {expected}, but is {found}"
    ))
}

fn no_column(index: usize) -> DbError {
    DbError::Type(format!("the row has no column {index}"))
}
