//! Clients of the servers that timelines come from.
//!
//! The client of `driftline-net` is shared by every source; an [`Upstream`] is one server read
//! with one [`Credential`], through a client of its API. Answers are read by pure code that knows
//! no HTTP: [`parse`] for Mastodon, modules inside the other two. Whatever the
//! API, a post's JSON is a Mastodon status; a tweet is kept whole inside it.

mod access;
mod account_handle;
mod address;
mod body;
mod client;
mod credential;
mod failure;
mod headers;
mod instance_inquiry;
mod items;
mod mastodon;
mod oauth;
pub mod parse;
mod segment;
mod stream;
#[cfg(test)]
mod testing;
mod timeline;
mod tweet;
mod tweet_html;
mod twitter;
mod x;

use driftline_net::excerpt;

pub use account_handle::{AccountHandle, HandleError};
pub use address::{Address, AddressError};
pub use client::{ClientPurpose, Upstream, abilities, is_post_id, look_ups, scope};
pub use credential::{Credential, CredentialError, TokenError};
pub use instance_inquiry::InstanceInquiry;
pub use oauth::OAuth1;
pub use stream::{Stream, StreamEndpoint, StreamMessage};
pub use timeline::{Timeline, TimelineError};
