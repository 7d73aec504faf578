use strum::VariantArray;

named_enum! {
    /// The state of an account. [`AccountState::change_to`] is the only way to change it.
    pub enum AccountState: "snake_case" {
        /// The mail address is verified, and the account waits for approval or for its first log-in.
        /// Every account starts in this state.
        NotActivated,
        /// All actions are allowed.
        Active,
        /// No action is allowed.
        Frozen,
        /// All actions are allowed, except public posts.
        Silenced,
    }
}

use AccountState::{Active, Frozen, NotActivated, Silenced};

/// An action that an account's state may forbid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, VariantArray)]
pub enum AccountAction {
    /// Log in with the passphrase.
    LogIn,
    /// Use tokens that were issued before.
    UseTokens,
    /// Follow, mark, list and change other own data.
    Act,
    /// Post to followers or mentioned accounts.
    Post,
    /// Post to everyone.
    PostPublicly,
}

/// A change that is not in [`AccountState::EDGES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an account that is {from} cannot become {to}")]
pub struct StateChangeError {
    /// The present state.
    pub from: AccountState,
    /// The requested state.
    pub to: AccountState,
}

/// The reason for a rejected log-in. Only for a person who knows the passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogInRefused {
    /// The account waits for approval.
    #[error("the account waits for approval")]
    AwaitsApproval,
    /// The account is frozen.
    #[error("the account is frozen")]
    Frozen,
}

impl AccountState {
    /// All permitted changes.
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
    /// [`StateChangeError`] if [`AccountState::EDGES`] does not contain the change. No state can
    /// change to itself.
    pub fn change_to(self, to: AccountState) -> Result<AccountState, StateChangeError> {
        match Self::EDGES.contains(&(self, to)) {
            true => Ok(to),
            false => Err(StateChangeError { from: self, to }),
        }
    }

    /// True if an account in this state may perform the action.
    pub fn allows(self, action: AccountAction) -> bool {
        match self {
            NotActivated => action == AccountAction::LogIn,
            Active => true,
            Silenced => action != AccountAction::PostPublicly,
            Frozen => false,
        }
    }

    /// The state after a log-in with the right passphrase. The first log-in activates an account,
    /// unless it waits for approval.
    ///
    /// # Errors
    /// [`LogInRefused`] if the account may not log in.
    pub fn after_log_in(self, awaits_approval: bool) -> Result<AccountState, LogInRefused> {
        match self {
            NotActivated if awaits_approval => Err(LogInRefused::AwaitsApproval),
            NotActivated => Ok(Active),
            Active | Silenced => Ok(self),
            Frozen => Err(LogInRefused::Frozen),
        }
    }
}
