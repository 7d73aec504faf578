//! The distribution of a store's rows over several nodes, as recorded in the store.

use driftline_db::{DbError, Tx};

/// The state of a store's distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// One server has all rows.
    Single,
    /// The rows are being distributed, or that was interrupted. Nothing else may use the store.
    Begun,
    /// The rows are distributed.
    Distributed,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            State::Single => "single",
            State::Begun => "begun",
            State::Distributed => "distributed",
        }
    }
}

/// The store's state.
///
/// # Errors
/// [`DbError`] if the database fails.
pub fn state(tx: &mut Tx<'_>) -> Result<State, DbError> {
    tx.query_one("select state from distribution where one = 1", &[], |row| {
        let name = row.str("state")?;
        let all = [State::Single, State::Begun, State::Distributed];
        let found = all.into_iter().find(|state| state.name() == name);
        found.ok_or_else(|| DbError::invalid("a distribution in an unknown state"))
    })
}
