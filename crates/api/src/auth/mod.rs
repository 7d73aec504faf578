//! Who may do what.
//!
//! Each request has one [`Viewer`](driftline_store::timeline::Viewer): the operator if
//! [`Authorization`] allows it, else anonymous. A route's extractor is its permission: a route that
//! takes `Operator` refuses anonymous requests, one that takes `ViewedBy` tells the two apart,
//! and all others serve anyone. What a viewer sees of stored posts is the store's to decide, so its
//! timelines take the viewer too. The routes of Mastodon's API read as the anonymous viewer whoever
//! asks: a token adds routes, and no posts.

mod authorization;
mod passphrase;
mod viewer;

pub use authorization::{Authorization, OperatorToken, OperatorTokenError, refuse_other_sites};
pub use passphrase::{HashError, PassphraseHasher, Verified};

pub(crate) use viewer::{Operator, ViewedBy};
