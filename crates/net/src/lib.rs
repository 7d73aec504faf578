//! The HTTP client of all code that fetches.
//!
//! [`Http`] contains the policy ([`Options`]) and the connections, and all requests share it. It
//! connects only to addresses that the policy allows, follows redirects only within one server, and
//! limits sizes and times. Its users interpret the answers.

mod answer;
pub mod excerpt;
mod fetch_error;
mod guard;
mod http;
mod location;
mod options;
mod redirect;
#[cfg(feature = "testing")]
pub mod testing;
mod trusted_server;

pub use answer::{Answer, OpenAnswer, Opened};
pub use fetch_error::{FetchError, FetchErrorKind};
pub use guard::PrivateAddressError;
pub use http::{Authorization, Http, HttpError};
pub use location::location;
pub use options::Options;
pub use redirect::RedirectError;
pub use reqwest::Upgraded;
