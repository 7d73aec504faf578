//! Users: accounts of this server, their relations to others, and the programs that act for them.
//!
//! Data of one account are written below [`local_account::root`], data shared by two of them below
//! [`relation::root`]. Data that must be unique among all of them are written while the local clock
//! is locked, too.
//!
//! Every secret (a token, a code, a cookie) names its account and is stored only as a
//! [`SecretHash`], in a table whose key begins with the account. Code that begins one writes below
//! the root of its account. Code that ends one is a statement that names it, and needs no root.

pub mod access_token;
pub mod account_note;
pub mod account_removal;
pub mod account_source;
pub mod app;
pub mod authorization_code;
pub mod bell;
pub mod bookmark_copy;
pub mod copy_relations;
pub(crate) mod draft;
pub mod filter;
mod filter_rows;
pub mod home_source;
mod library_removal;
pub mod list;
pub mod list_bell;
pub mod list_entry;
pub mod list_member;
pub mod local_account;
pub mod log_ins;
pub mod marked_post;
pub mod marked_timeline;
pub mod marker;
pub mod mute;
pub mod note;
pub mod notification;
pub(crate) mod object_keys;
mod passphrase_columns;
pub mod pending_account;
pub mod profile;
pub mod relation;
pub(crate) mod relation_object;
mod secret_hash;
pub mod token_family;
mod token_holder;
pub mod web_session;

pub use secret_hash::SecretHash;
pub use token_holder::TokenHolder;

use std::str::FromStr;

use driftline_db::{DbError, PendingRows, Tx};

use crate::{error::StoreError, id_types::LocalAccountId, library};

/// The last USN of an account's library, which changes whenever one of its objects does, requested
/// together with the next query. There is no row if the account does not exist.
///
/// # Errors
/// [`DbError`] if the database fails.
pub fn update_count_later(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<PendingRows<'static, i64>, DbError> {
    library::update_count_later(tx, library::LibraryOwner::Account(account))
}

/// Parses a value that is stored under its name.
fn parsed<T: FromStr>(what: &'static str, text: &str) -> Result<T, StoreError> {
    let parsed = text.parse();
    parsed.map_err(|_| StoreError::unreadable(what, &format!("unknown: {text:?}")))
}
