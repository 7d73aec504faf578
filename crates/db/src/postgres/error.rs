use std::error::Error;

use tokio_postgres::error::SqlState;

use crate::error::DbError;

/// True if a pooler has moved the connection to another server process, which does not know a
/// prepared statement, or knows another one under its name.
pub(super) fn is_lost_statement(error: &tokio_postgres::Error) -> bool {
    let lost = [
        &SqlState::INVALID_SQL_STATEMENT_NAME,
        &SqlState::DUPLICATE_PSTATEMENT,
    ];
    error.code().is_some_and(|code| lost.contains(&code))
}

/// Maps a driver's error to [`DbError`].
pub(super) fn classify(error: &tokio_postgres::Error) -> DbError {
    let Some(report) = error.as_db_error() else {
        let source = error.source();
        if error.is_closed() || source.is_some_and(|source| source.is::<std::io::Error>()) {
            return DbError::ConnectionLost("the connection broke".into());
        }
        // The driver's errors concern types and contain no values.
        let reason = source.map_or_else(String::new, |source| format!(": {source}"));
        return DbError::Type(format!("{error}{reason}"));
    };
    let code = report.code();
    let message = || report.message().to_owned();
    let constraint = || report.constraint().unwrap_or_default().to_owned();
    let table = || report.table().unwrap_or_default().to_owned();
    match *code {
        SqlState::UNIQUE_VIOLATION => DbError::Conflict {
            table: table(),
            constraint: constraint(),
        },
        SqlState::T_R_DEADLOCK_DETECTED => DbError::Deadlock,
        SqlState::T_R_SERIALIZATION_FAILURE => DbError::Serialization,
        SqlState::READ_ONLY_SQL_TRANSACTION => DbError::ReadOnly,
        SqlState::FEATURE_NOT_SUPPORTED if report.message().contains("cached plan") => {
            DbError::StalePlan
        }
        _ if is_lost_statement(error) => DbError::StalePlan,
        SqlState::QUERY_CANCELED => DbError::Cancelled(message()),
        SqlState::LOCK_NOT_AVAILABLE | SqlState::TOO_MANY_CONNECTIONS => DbError::Busy(message()),
        SqlState::ADMIN_SHUTDOWN
        | SqlState::CRASH_SHUTDOWN
        | SqlState::CANNOT_CONNECT_NOW
        | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => DbError::ConnectionLost(message()),
        SqlState::DATATYPE_MISMATCH | SqlState::UNDEFINED_FUNCTION => DbError::Type(message()),
        // Not an error of the network: an unprepared statement has other parameters.
        SqlState::PROTOCOL_VIOLATION if report.message().starts_with("bind message") => {
            DbError::Type(message())
        }
        _ => match code.code().get(..2) {
            Some("08") => DbError::ConnectionLost(message()),
            Some("23") => DbError::Constraint(format!("{} ({})", constraint(), table())),
            // The message of a data exception quotes the value.
            Some("22") => DbError::Type(format!("PostgreSQL refused a value ({})", code.code())),
            _ => DbError::Other(message()),
        },
    }
}
