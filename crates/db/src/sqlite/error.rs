use rusqlite::ErrorCode;
use rusqlite::ffi;

use crate::error::DbError;

/// Maps a driver's error to [`DbError`].
pub(crate) fn classify(error: &rusqlite::Error) -> DbError {
    match error {
        rusqlite::Error::SqliteFailure(failure, message) => {
            let message = message.clone().unwrap_or_else(|| failure.to_string());
            of_failure(*failure, message)
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => of_failure(*error, msg.clone()),
        rusqlite::Error::ExecuteReturnedResults => DbError::gives_rows(),
        rusqlite::Error::InvalidParameterCount(given, expected) => {
            DbError::wrong_count(*given, *expected)
        }
        other => DbError::Other(other.to_string()),
    }
}

fn of_failure(failure: ffi::Error, message: String) -> DbError {
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            DbError::Busy("another process holds the database file".into())
        }
        ErrorCode::ReadOnly => DbError::ReadOnly,
        ErrorCode::DiskFull => DbError::Other(format!(
            "{message}: make room on the disk that holds the database file"
        )),
        ErrorCode::DatabaseCorrupt => DbError::Other(format!(
            "{message}: the database file is damaged; restore a backup, or save what can be read \
             from a copy of it with `sqlite3 COPY .recover`"
        )),
        ErrorCode::SystemIoFailure => DbError::Other(format!(
            "{message}: check that the disk that holds the database file works and has room"
        )),
        ErrorCode::ConstraintViolation => match failure.extended_code {
            ffi::SQLITE_CONSTRAINT_UNIQUE
            | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
            | ffi::SQLITE_CONSTRAINT_ROWID => conflict(&message),
            _ => DbError::Constraint(message),
        },
        _ => DbError::Other(message),
    }
}

/// Parses `UNIQUE constraint failed: t.a, t.b` or `UNIQUE constraint failed: index 'name'`.
fn conflict(message: &str) -> DbError {
    let columns = message
        .split_once(": ")
        .map_or(message, |(_, columns)| columns);
    let table = columns.split_once('.').map_or("", |(table, _)| table);
    DbError::Conflict {
        table: table.to_owned(),
        constraint: columns.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_disk_says_what_to_do() {
        let (full, io) = ("make room on the disk", "works and has room");
        for (code, message, advice) in [
            (ffi::SQLITE_FULL, "database or disk is full", full),
            (ffi::SQLITE_CORRUPT, "malformed", "restore a backup"),
            (ffi::SQLITE_IOERR_WRITE, "disk I/O error", io),
            (ffi::SQLITE_IOERR_SHMSIZE, "disk I/O error", io),
        ] {
            for text in [None, Some(message.to_owned())] {
                let is_named = text.is_some();
                let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(code), text);
                let told = classify(&failure);
                assert!(matches!(told, DbError::Other(_)), "{told}");
                assert!(told.to_string().contains(advice), "{told}");
                assert!(!is_named || told.to_string().starts_with(message), "{told}");
            }
        }
    }
}
