use std::error::Error;

use tokio_postgres::error::SqlState;

use crate::error::DbError;

/// Maps a driver's error.
pub(super) fn classify(error: &tokio_postgres::Error) -> DbError {
    let Some(report) = error.as_db_error() else {
        let source = error.source();
        if error.is_closed() || source.is_some_and(|source| source.is::<std::io::Error>()) {
            return DbError::ConnectionLost("the connection broke".into());
        }
        // The driver's errors are about types and carry no values.
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
        // A pooler in between has dropped it.
        SqlState::INVALID_SQL_STATEMENT_NAME => DbError::StalePlan,
        SqlState::QUERY_CANCELED => DbError::Cancelled(message()),
        SqlState::LOCK_NOT_AVAILABLE | SqlState::TOO_MANY_CONNECTIONS => DbError::Busy(message()),
        SqlState::ADMIN_SHUTDOWN
        | SqlState::CRASH_SHUTDOWN
        | SqlState::CANNOT_CONNECT_NOW
        | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => DbError::ConnectionLost(message()),
        _ => match code.code().get(..2) {
            Some("08") => DbError::ConnectionLost(message()),
            Some("23") => DbError::Constraint(format!("{} ({})", constraint(), table())),
            // A data exception's message quotes the value.
            Some("22") => DbError::Type(format!("PostgreSQL refused a value ({})", code.code())),
            _ => DbError::Other(message()),
        },
    }
}
