use strum::VariantArray;

named_enum! {
    /// The state of an account. [`AccountState::change_to`] is the only way from one to another.
    pub enum AccountState: "snake_case" {
        /// Its mail address is verified, and it waits for approval or for its first log-in. Every account
        /// begins so.
        NotActivated,
        /// It may do everything.
        Active,
        /// It may do nothing.
        Frozen,
        /// It may do everything but post for the world.
        Silenced,
    }
}

use AccountState::{Active, Frozen, NotActivated, Silenced};

/// What an account's state may forbid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, VariantArray)]
pub enum AccountAction {
    /// Log in with the passphrase.
    LogIn,
    /// Use tokens that it was given before.
    UseTokens,
    /// Follow, mark, list and whatever else changes its own things.
    Act,
    /// Post to followers or named people.
    Post,
    /// Post for the world.
    PostPublicly,
}

/// A change that is not among [`AccountState::EDGES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an account that is {from} cannot become {to}")]
pub struct StateChangeError {
    /// The state that it has.
    pub from: AccountState,
    /// The state that it would have had.
    pub to: AccountState,
}

/// Why an account may not log in. To be told only to somebody who knows the passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogInRefused {
    /// It waits for approval.
    #[error("the account waits for approval")]
    AwaitsApproval,
    /// It is frozen.
    #[error("the account is frozen")]
    Frozen,
}

impl AccountState {
    /// Every change that there is.
    pub const EDGES: [(AccountState, AccountState); 7] = [
        (NotActivated, Active),
        (Active, Frozen),
        (Active, Silenced),
        (Silenced, Frozen),
        (Frozen, Silenced),
        (Silenced, Active),
        (Frozen, Active),
    ];

    /// The state after this change.
    ///
    /// # Errors
    /// [`StateChangeError`] if there is no such edge; no state has one to itself.
    pub fn change_to(self, to: AccountState) -> Result<AccountState, StateChangeError> {
        match Self::EDGES.contains(&(self, to)) {
            true => Ok(to),
            false => Err(StateChangeError { from: self, to }),
        }
    }

    /// Whether an account in this state may do that.
    pub fn allows(self, action: AccountAction) -> bool {
        match self {
            NotActivated => action == AccountAction::LogIn,
            Active => true,
            Silenced => action != AccountAction::PostPublicly,
            Frozen => false,
        }
    }

    /// The state after a log-in with the right passphrase: the first one activates an account that waits
    /// for nothing else.
    ///
    /// # Errors
    /// [`LogInRefused`] if it may not log in.
    pub fn after_log_in(self, awaits_approval: bool) -> Result<AccountState, LogInRefused> {
        match self {
            NotActivated if awaits_approval => Err(LogInRefused::AwaitsApproval),
            NotActivated => Ok(Active),
            Active | Silenced => Ok(self),
            Frozen => Err(LogInRefused::Frozen),
        }
    }
}
