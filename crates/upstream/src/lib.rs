//! Clients of the servers that timelines come from.
//!
//! [`Http`] holds the policy and the connections and is shared by every
//! source; [`Mastodon`] is one server read with one token. [`parse`] is pure
//! and knows no HTTP.

mod address;
mod excerpt;
mod facts;
mod failure;
mod guard;
mod http;
pub mod link;
mod mastodon;
pub mod parse;
mod redirect;
mod segment;
mod timeline;

pub use address::{Address, AddressError};
pub use guard::is_private;
pub use http::{Http, HttpError, Options};
pub use mastodon::{Mastodon, TokenError};
pub use timeline::{Timeline, TimelineError};
