use driftline_db::DbError;

/// What can go wrong in the store. Outcomes that a caller expects are values, not errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database failed.
    #[error(transparent)]
    Db(DbError),

    /// There is no such source (any more).
    #[error("there is no such source")]
    NoSource,

    /// Another worker has taken the source over: what this one brought must not be stored.
    #[error("the lease on the source was lost to another worker")]
    LeaseLost,

    /// A page whose posts and checked IDs do not belong together.
    #[error("the page has {posts} posts but {keys} checked IDs")]
    PageMismatch {
        /// Posts on the page.
        posts: usize,
        /// Keys of its reading.
        keys: usize,
    },

    /// A stored value that this version cannot read.
    #[error("the store holds {what} that cannot be read: {reason}")]
    Unreadable {
        /// Which value.
        what: &'static str,
        /// Why.
        reason: String,
    },
}

impl StoreError {
    /// Whether the store as a whole may fail, as one that is away, full or read-only does: another
    /// try later may help. Other errors are about what one source holds or brings.
    pub fn is_outage(&self) -> bool {
        let StoreError::Db(error) = self else {
            return false;
        };
        !matches!(
            error,
            DbError::Conflict { .. }
                | DbError::Constraint(_)
                | DbError::NulInText
                | DbError::NoRow
                | DbError::TooManyRows
                | DbError::Type(_)
                | DbError::RootMissing(_)
                | DbError::Panicked
                | DbError::Unsupported(_)
        )
    }

    pub(crate) fn unreadable(what: &'static str, reason: &impl ToString) -> StoreError {
        StoreError::Unreadable {
            what,
            reason: reason.to_string(),
        }
    }
}

impl From<DbError> for StoreError {
    fn from(error: DbError) -> StoreError {
        match error {
            DbError::RootMissing("source") => StoreError::NoSource,
            error => StoreError::Db(error),
        }
    }
}
