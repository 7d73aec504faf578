//! People: accounts of this server, how they stand to others, and what lets programs act for them.
//!
//! What belongs to an account is written below [`local_account::root`], what two of them share below
//! [`relation::root`], and what has to be unique among all of them while the local clock is held, too.
//!
//! Every secret (a token, a code, a cookie) names its account and is kept as a [`SecretHash`] alone, in a
//! table whose key begins with the account. What begins one is
//! written below the root of its account; what ends one is a statement that says which, and needs no root.

pub mod access_token;
pub mod account_removal;
pub mod account_source;
pub mod app;
pub mod authorization_code;
pub mod local_account;
pub mod log_ins;
pub mod mute;
mod passphrase_columns;
pub mod pending_account;
pub mod profile;
pub mod relation;
mod secret_hash;
pub mod token_family;
mod token_holder;
pub mod web_session;

pub use secret_hash::SecretHash;
pub use token_holder::TokenHolder;

use std::str::FromStr;

use crate::error::StoreError;

/// A value that is stored under its name.
fn parsed<T: FromStr>(what: &'static str, text: &str) -> Result<T, StoreError> {
    let parsed = text.parse();
    parsed.map_err(|_| StoreError::unreadable(what, &format!("unknown: {text:?}")))
}
