//! A client for tests.
#![allow(clippy::unwrap_used)]

use crate::{Http, Options};

/// A client for servers on this machine.
///
/// # Panics
/// If the client cannot be made.
pub fn http_client() -> Http {
    let options = Options {
        allow_private: true,
        ..Options::default()
    };
    Http::new(options).unwrap()
}
