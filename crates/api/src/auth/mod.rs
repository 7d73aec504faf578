//! Who may do what.
//!
//! Each request has one [`Viewer`](driftline_store::timeline::Viewer): the operator if
//! [`Authorization`] allows it, else anonymous. A route's extractor is its permission: a route that
//! takes `Operator` refuses anonymous requests, one that takes `ViewedBy` tells the two apart,
//! and all others serve anyone. What a viewer sees of stored posts is the store's to decide, so its
//! timelines take the viewer too. The routes of Mastodon's API read as the anonymous viewer whoever
//! asks: a token adds routes, and no posts.

mod authorization;
mod caller;
mod caller_cache;
mod jwt_provider;
mod native_token;
pub(crate) mod opaque_secret;
mod scope;
mod throttle;
mod viewer;

pub use authorization::{Authorization, OperatorToken, OperatorTokenError, refuse_other_sites};
pub use caller_cache::CallerCache;
pub use native_token::{AUTH_LIFETIME_MS, KEY_OVERLAP_MS, NativeTokens, TokenKeys, TokenKeysError};
pub use scope::{Scope, ScopeSet, UnknownScope};
pub use throttle::{Throttle, ThrottleRule, TooEarly, network};

pub(crate) use authorization::is_of_another_site;
pub(crate) use caller::{Caller, CallerKind, Credential, LoggedIn, MayRead, WithToken};
pub(crate) use scope::needs;
pub(crate) use viewer::{Operator, ViewedBy};
