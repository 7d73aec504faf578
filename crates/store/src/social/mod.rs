//! People: what lets programs act for them.
//!
//! Every secret (a token, a code, a cookie) names its account and is kept as a [`SecretHash`] alone, in a
//! table whose key begins with the account.

pub mod access_token;
pub mod app;
pub mod authorization_code;
mod secret_hash;
pub mod token_family;
pub mod web_session;

pub use secret_hash::SecretHash;

use driftline_id::Id;

/// A person's account on this server.
#[derive(Debug)]
pub enum LocalAccount {}

/// The ID of a person's account on this server.
pub type LocalAccountId = Id<LocalAccount>;
