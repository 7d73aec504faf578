//! Requests about the accounts of this server.

use driftline_core::social::{
    AccountName, AccountState, MailAddress, Nickname, PassphraseHash, Profile, Role,
};
use serde::{Deserialize, Serialize};

/// Create an account, whose mail address counts as verified by the operator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CreateAccount {
    /// Its name.
    pub name: AccountName,
    /// Its mail address.
    pub mail: MailAddress,
    /// Its role.
    pub role: Role,
    /// Its passphrase, hashed by whoever asks.
    pub passphrase: PassphraseHash,
}

/// List the accounts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListAccounts;

/// List the sign-ups whose mail address is not verified yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListPendingAccounts;

/// A sign-up whose mail address is not verified yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingAccountRow {
    /// The name that it holds.
    pub name: AccountName,
    /// The address that its mail went to.
    pub mail: MailAddress,
    /// When it signed up, the last time.
    pub signed_up_at_ms: i64,
    /// When it is void.
    pub void_at_ms: i64,
    /// Why it wants to be here.
    pub reason: String,
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRow {
    /// Its ID, as the APIs write it.
    pub id: String,
    /// Its name.
    pub name: AccountName,
    /// The name that is shown; empty at first.
    pub nickname: Nickname,
    /// Its state.
    pub state: AccountState,
    /// Whether somebody has to approve it before its first log-in.
    pub awaits_approval: bool,
    /// Its role.
    pub role: Role,
    /// Its mail address.
    pub mail: MailAddress,
    /// When the address was verified.
    pub mail_verified_at_ms: i64,
    /// When it was created.
    pub created_at_ms: i64,
    /// When its passphrase was last presented.
    pub last_login_at_ms: Option<i64>,
    /// Why it wants to be here.
    pub reason: String,
    /// Whether it may show its sources to the world.
    pub may_publish: bool,
}

/// Show an account.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowAccount {
    /// Its name.
    pub name: AccountName,
}

/// An account with what it says of itself, and how many others it has to do with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownAccount {
    /// The account.
    #[serde(flatten)]
    pub account: AccountRow,
    /// What it says of itself.
    pub profile: Profile,
    /// How many it follows.
    pub following: i64,
    /// How many follow it.
    pub followers: i64,
    /// How many it asks to follow.
    pub requested: i64,
    /// How many ask to follow it.
    pub requests: i64,
    /// How many it blocks.
    pub blocks: i64,
    /// How many it mutes.
    pub mutes: i64,
}

/// Freeze, unfreeze, silence or activate an account.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangeAccountState {
    /// Its name.
    pub name: AccountName,
    /// The state that it must have for that, if not any will do.
    pub from: Option<AccountState>,
    /// The state that it is to have.
    pub to: AccountState,
}

/// An account's state in words.
pub const fn account_state_text(state: AccountState) -> &'static str {
    match state {
        AccountState::NotActivated => "not activated",
        AccountState::Active => "active",
        AccountState::Frozen => "frozen",
        AccountState::Silenced => "silenced",
    }
}

/// Approve an account that waits for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ApproveAccount {
    /// Its name.
    pub name: AccountName,
}

/// An account has a state, maybe a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedAccountState {
    /// Its name.
    pub name: AccountName,
    /// The state that it has.
    pub state: AccountState,
    /// The state that it had.
    pub before: AccountState,
    /// Whether that is another one.
    pub changed: bool,
}

/// Make all replicas of an account's library fetch it as a whole. The reply is the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResyncAccount {
    /// Its name.
    pub name: AccountName,
}

/// Let an account show its sources to the world, or no more.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetPublishing {
    /// Its name.
    pub name: AccountName,
    /// Whether it may.
    pub may_publish: bool,
}

/// An account may show its sources to the world, or may not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPublishing {
    /// Its name.
    pub name: AccountName,
    /// Whether it may.
    pub may_publish: bool,
    /// Whether that is new.
    pub changed: bool,
    /// Its sources that were public and are private now.
    pub withdrawn: usize,
}

/// Replace an account's passphrase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResetPassphrase {
    /// Its name.
    pub name: AccountName,
    /// The new one, hashed by whoever asks.
    pub passphrase: PassphraseHash,
}

/// An account has another passphrase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPassphrase {
    /// The account's name.
    pub name: AccountName,
}

/// Say what goes with an account, or a sign-up, if it is deleted now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanAccountRemoval {
    /// Its name.
    pub name: AccountName,
}

/// Delete an account with all that is its own, or a sign-up whose mail address is not verified yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeleteAccount {
    /// Its name.
    pub name: AccountName,
}

/// What goes, or went, with an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedAccount {
    /// Its name.
    pub name: AccountName,
    /// Whether it is no account, but a sign-up whose mail address is not verified yet.
    pub pending: bool,
    /// Its sources.
    pub sources: u64,
    /// The posts of these that no other source has.
    pub posts: u64,
    /// Its relations to others, and of others to it.
    pub relations: i64,
    /// The accounts that it mutes.
    pub mutes: i64,
    /// Bookmarks, favourites, lists and their accounts, read markers, filters, notes, drafts, the own profile.
    pub objects: i64,
}
