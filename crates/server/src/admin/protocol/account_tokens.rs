use driftline_core::social::AccountName;
use serde::{Deserialize, Serialize};

/// List what is logged in to an account.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListAccountTokens {
    /// Its name.
    pub name: AccountName,
}

/// End something that is logged in to an account.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RevokeAccountToken {
    /// The account's name.
    pub name: AccountName,
    /// The ID in the list.
    pub id: u64,
}

/// What something that is logged in is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// An app with a token of Mastodon's API.
    App,
    /// A device with native tokens.
    Device,
    /// A browser on the server's own pages.
    Browser,
}

/// Something that is logged in to an account. Never holds a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountTokenRow {
    /// What it is.
    pub kind: TokenKind,
    /// Its ID, by which it can be revoked.
    pub id: String,
    /// What it calls itself.
    pub name: String,
    /// What it may do; of an app alone.
    pub scopes: Option<String>,
    /// When it was let in, Unix ms.
    pub created_at_ms: i64,
    /// About when it was last used, Unix ms.
    pub used_at_ms: Option<i64>,
    /// When it ends by itself, Unix ms; never for an app.
    pub ends_at_ms: Option<i64>,
}

/// Something is logged out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedToken {
    /// The account's name.
    pub name: AccountName,
    /// The ID that it had.
    pub id: u64,
}
