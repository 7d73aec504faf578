//! Whether the rows of a store lie on several nodes, as the store itself says.

use driftline_db::{DbError, Tx};

/// True if the rows of a store lie on several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// One server has all of them.
    Single,
    /// They are being distributed, or the program that did that was stopped: nothing else may use them.
    Begun,
    /// They are distributed.
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
pub fn state(tx: &mut Tx<'_>) -> Result<State, DbError> {
    tx.query_one("select state from distribution where one = 1", &[], |row| {
        let name = row.str("state")?;
        let all = [State::Single, State::Begun, State::Distributed];
        let found = all.into_iter().find(|state| state.name() == name);
        found.ok_or_else(|| DbError::invalid("a distribution in an unknown state"))
    })
}
