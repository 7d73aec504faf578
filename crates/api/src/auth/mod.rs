//! Who may do what.
//!
//! A route's extractor is its permission. One that takes `Operator` is the operator's, one that takes
//! `ViewedBy` tells the operator from everybody else; those that people use name the scope that they
//! need (`caller`). What a viewer sees of stored posts is the store's to decide, so its timelines take
//! the viewer too.

mod authorization;
pub(crate) mod caller;
mod caller_cache;
pub(crate) mod device_token;
mod jwt_provider;
pub(crate) mod log_in;
mod log_in_throttle;
mod native_token;
pub(crate) mod opaque_secret;
mod passphrase;
mod request_context;
mod scope;
mod throttle;
mod token_keys;
mod viewer;
mod waiting_line;

pub use authorization::{Authorization, OperatorToken, OperatorTokenError, refuse_other_sites};
pub use caller_cache::CallerCache;
pub use native_token::{AUTH_LIFETIME_MS, NativeTokens};
pub use passphrase::{HashError, PassphraseHasher, Verified};
pub use scope::{Scope, ScopeSet, UnknownScope};
pub use throttle::{Throttle, ThrottleRule, TooEarly, network};
pub use token_keys::{KEY_OVERLAP_MS, KEY_SETTLING_MS, TokenKeys, TokenKeysError};

pub(crate) use authorization::{is_of_another_site, is_own_name};
pub(crate) use caller::{CallerKind, LoggedIn, MayRead, OperatorOrAccount, WithToken};
pub(crate) use device_token::{DEVICE_LIFETIME_MS, KnownDevice};
pub(crate) use log_in_throttle::LogInThrottle;
pub(crate) use request_context::RequestContext;
pub(crate) use scope::needs;
pub(crate) use throttle::seconds;
pub(crate) use viewer::{Operator, ViewedBy};
pub(crate) use waiting_line::{Joined, WaitingLines};
