use driftline_db::DbError;

/// An error of the store. Expected outcomes are values, not errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database failed.
    #[error(transparent)]
    Db(DbError),

    /// The source does not exist (any more).
    #[error("there is no such source")]
    NoSource,

    /// The local account does not exist (any more).
    #[error("there is no such account")]
    NoAccount,

    /// All possible IDs of sources were given.
    #[error("the store has given every ID that a source may have; begin a new store")]
    NoSourceIds,

    /// The distribution of its rows was interrupted.
    #[error("the store is half distributed: finish it with `driftline migrate --distribute`")]
    HalfDistributed,

    /// Another worker has taken over the source. This worker's results must not be stored.
    #[error("the lease on the source was lost to another worker")]
    LeaseLost,

    /// The posts of a page do not match its checked IDs.
    #[error("the page has {posts} posts but {keys} checked IDs")]
    PageMismatch {
        /// The number of posts on the page.
        posts: usize,
        /// The number of keys of its reading.
        keys: usize,
    },

    /// So many posts wait for the search index that a search cannot check all of them.
    #[error(
        "the search index is being made: more than {waiting} posts wait for it; try again later"
    )]
    IndexBehind {
        /// The number of waiting posts that a search would check.
        waiting: u32,
    },

    /// A search has read as much as one request may.
    #[error(
        "this search reads more than one request may: add a word of at least two characters, an author or an instance, or begin at a lower max_id"
    )]
    SearchTooLong,

    /// A stored value that this version cannot read.
    #[error("the store holds {what} that cannot be read: {reason}")]
    Unreadable {
        /// The value.
        what: &'static str,
        /// The reason.
        reason: String,
    },
}

impl StoreError {
    /// True if the whole store may fail, because it is unreachable, full or read-only. A retry may
    /// help. Other errors concern the data of one source.
    pub fn is_outage(&self) -> bool {
        matches!(self, StoreError::Db(error) if !is_about_data(error))
    }

    /// True if the database rejected the log-in, or the system denied access to its file.
    pub fn is_denied(&self) -> bool {
        matches!(self, StoreError::Db(DbError::Denied(_)))
    }

    /// True if the target of a restore is not empty.
    pub fn is_not_empty(&self) -> bool {
        matches!(self, StoreError::Db(DbError::NotEmpty(_)))
    }

    /// True if a text contained U+0000, which neither database stores. It is removed from texts of
    /// servers, so it came with a request.
    pub fn is_nul_in_text(&self) -> bool {
        let StoreError::Db(error) = self else {
            return false;
        };
        let mut error = error;
        while let DbError::Poisoned(first) = error {
            error = first;
        }
        matches!(error, DbError::NulInText)
    }

    /// True if the work was ended on purpose.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, StoreError::Db(DbError::Interrupted))
    }

    pub(crate) fn unreadable(what: &'static str, reason: &impl ToString) -> StoreError {
        StoreError::Unreadable {
            what,
            reason: reason.to_string(),
        }
    }
}

fn is_about_data(error: &DbError) -> bool {
    match error {
        DbError::Poisoned(first) => is_about_data(first),
        DbError::Conflict { .. }
        | DbError::Constraint(_)
        | DbError::NulInText
        | DbError::NoRow
        | DbError::TooManyRows
        | DbError::Type(_)
        | DbError::RootMissing(_)
        | DbError::Panicked => true,
        _ => false,
    }
}

impl From<DbError> for StoreError {
    fn from(error: DbError) -> StoreError {
        match error {
            DbError::RootMissing("source") => StoreError::NoSource,
            DbError::RootMissing("local_account") => StoreError::NoAccount,
            error => StoreError::Db(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_data_is_no_outage_even_behind_a_poisoned_transaction() {
        let constraint = DbError::Constraint("post".into());
        let poisoned = |error| StoreError::Db(DbError::Poisoned(Box::new(error)));
        assert!(!StoreError::Db(constraint.clone()).is_outage());
        assert!(!poisoned(constraint).is_outage());
        assert!(!StoreError::LeaseLost.is_outage());
        let full = DbError::Other("database or disk is full".into());
        assert!(StoreError::Db(full.clone()).is_outage());
        assert!(poisoned(full).is_outage());
        assert!(StoreError::Db(DbError::ReadOnly).is_outage());
    }
}
