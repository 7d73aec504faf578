/// An error of a database.
///
/// No variant contains a connection URL, a password or a value from a row. Messages name tables,
/// columns and constraints only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DbError {
    /// Another process holds the database, or the server has no free connection.
    #[error("the database is busy: {0}")]
    Busy(String),

    /// A row with the same unique key exists.
    #[error("a row with the same key exists in `{table}` ({constraint})")]
    Conflict {
        /// The table, the same on both databases.
        table: String,
        /// The constraint's name on PostgreSQL, its columns on SQLite. For messages only.
        constraint: String,
    },

    /// A check, a not-null or another constraint rejected a row.
    #[error("a constraint was violated: {0}")]
    Constraint(String),

    /// Writers kept locking each other out, even after several runs of the write.
    #[error("the transaction was deadlocked too often")]
    Deadlock,

    /// The database kept rejecting the order of concurrent transactions, after several runs.
    #[error("the transaction could not be serialized")]
    Serialization,

    /// The server cannot be reached, or the connection broke. Nothing was committed.
    #[error("no connection to the database: {0}")]
    ConnectionLost(String),

    /// The connection broke during the commit, which may or may not have happened.
    #[error("the connection broke during the commit, whose outcome is unknown")]
    CommitUnknown,

    /// The server cancelled a statement, because it took longer than `statement_timeout` or an
    /// administrator cancelled it. Nothing was committed.
    #[error("the database cancelled a statement: {0}")]
    Cancelled(String),

    /// An earlier statement of the transaction failed, so it can only be rolled back.
    #[error("an earlier statement of the transaction failed: {0}")]
    Poisoned(Box<DbError>),

    /// The database has been closed.
    #[error("the database is closed")]
    Closed,

    /// The closure panicked; its transaction was rolled back.
    #[error("a transaction's closure panicked")]
    Panicked,

    /// A read tried to write.
    #[error("a read tried to write")]
    ReadOnly,

    /// The root row that a write locks does not exist.
    #[error("the root row in `{0}` does not exist")]
    RootMissing(&'static str),

    /// A query that must return a row returned none.
    #[error("the query gave no row")]
    NoRow,

    /// A query that may return one row returned several.
    #[error("the query gave more than one row")]
    TooManyRows,

    /// A value or parameter has another type than requested.
    #[error("wrong type: {0}")]
    Type(String),

    /// Text contains a NUL character. PostgreSQL cannot store it, so both databases reject it.
    #[error("text must not contain a NUL character")]
    NulInText,

    /// A cached plan went stale because another process changed the schema.
    #[error("the schema changed under a prepared statement")]
    StalePlan,

    /// The database was migrated by a newer version of the program, which this one is too old to
    /// use.
    #[error(
        "the database has schema version {database}, which only programs of schema version \
         {needed} or newer can use, and this program's is {program}: start a newer version of the \
         program, or restore a backup from before the migration"
    )]
    Newer {
        /// The database's schema version.
        database: i64,
        /// The oldest schema version whose program can use the database.
        needed: i64,
        /// The newest schema version that the program knows.
        program: i64,
    },

    /// The database was made from a schema with another text.
    #[error(
        "the database was made by another development build of driftline (its schema is {database}, this \
         program's is {program}), and none is converted before release 0.1.0: use the build that made it, or \
         begin with an empty data folder or database"
    )]
    OtherSchema {
        /// The database's schema.
        database: String,
        /// The program's.
        program: String,
    },

    /// A migration failed or does not fit the database's history.
    #[error("migration: {0}")]
    Migration(String),

    /// The database cannot be opened.
    #[error("{0}")]
    Open(String),

    /// The server rejected the log-in, or the system denied access to the file.
    #[error("{0}")]
    Denied(String),

    /// A copy of a database has changed since it was made.
    #[error("damaged: {0}")]
    Damaged(String),

    /// The target of a restore is not empty.
    #[error("{0}")]
    NotEmpty(String),

    /// The watch of the work ended it.
    #[error("interrupted")]
    Interrupted,

    /// Any other error, in the database's words.
    #[error("{0}")]
    Other(String),
}

impl DbError {
    /// An error for a row that the program cannot interpret.
    pub fn invalid(message: impl Into<String>) -> DbError {
        DbError::Type(message.into())
    }

    pub(crate) fn gives_rows() -> DbError {
        DbError::Type("`execute` ran a statement that gives rows: use `query`".into())
    }

    pub(crate) fn wrong_count(given: usize, expected: usize) -> DbError {
        DbError::Type(format!(
            "the statement has {expected} parameters, but {given} were given"
        ))
    }

    /// True if another run of the whole transaction can help. Never true after an attempt to
    /// commit.
    pub(crate) fn is_retryable(&self) -> bool {
        matches!(
            self,
            DbError::Deadlock
                | DbError::Serialization
                | DbError::ConnectionLost(_)
                | DbError::StalePlan
        )
    }
}
