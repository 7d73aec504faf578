//! People: accounts of this server, and how they stand to others.
//!
//! What belongs to an account is written below [`local_account::root`], what two of them share below
//! [`relation::root`], and what has to be unique among all of them while the local clock is held, too.

pub mod account_removal;
pub mod local_account;
pub mod mute;
mod passphrase_columns;
pub mod pending_account;
pub mod profile;
pub mod relation;

use std::str::FromStr;

use crate::error::StoreError;

/// A value that is stored under its name.
fn parsed<T: FromStr>(what: &'static str, text: &str) -> Result<T, StoreError> {
    let parsed = text.parse();
    parsed.map_err(|_| StoreError::unreadable(what, &format!("unknown: {text:?}")))
}
