//! What people's accounts, tokens and pages need beside the store.

use std::{net::IpAddr, sync::Arc};

use driftline_runtime::now_ms;
use parking_lot::Mutex;

use crate::{
    auth::{CallerCache, NativeTokens, Throttle, ThrottleRule, TokenKeys},
    transport::ApiError,
};

/// What people's accounts, tokens and pages need beside the store. Clones share it.
#[derive(Clone, Debug)]
pub struct People {
    /// Callers that were read lately. Whoever freezes an account or revokes tokens in this process says so
    /// here.
    pub callers: CallerCache,
    /// Gives and verifies native tokens.
    pub native: NativeTokens,
    /// The time, Unix ms.
    pub clock: fn() -> i64,
    /// How often addresses and accounts try to log in.
    pub(crate) throttles: Arc<Throttles>,
}

/// How often it was tried, by whom.
#[derive(Debug)]
pub(crate) struct Throttles {
    pub(crate) addresses: Mutex<Throttle<IpAddr>>,
    pub(crate) accounts: Mutex<Throttle<AccountKey>>,
    pub(crate) registrations: Mutex<Throttle<IpAddr>>,
}

/// Whose log-in is tried: an account, or a text that names none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AccountKey {
    Known(u64),
    Unknown(String),
}

impl People {
    /// With these keys, for the store of that random name.
    pub fn new(keys: TokenKeys, store_nonce: &str) -> Self {
        Self {
            callers: CallerCache::default(),
            native: NativeTokens::new(keys, store_nonce),
            clock: now_ms,
            throttles: Arc::new(Throttles {
                addresses: Mutex::new(Throttle::new(ThrottleRule::ADDRESS)),
                accounts: Mutex::new(Throttle::new(ThrottleRule::ACCOUNT)),
                registrations: Mutex::new(Throttle::new(ThrottleRule::REGISTRATION)),
            }),
        }
    }

    /// The time, Unix ms.
    pub(crate) fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    /// Counts something that any address may do, but not as often as it likes.
    pub(crate) fn count_registration(&self, address: IpAddr) -> Result<(), ApiError> {
        let mut registrations = self.throttles.registrations.lock();
        let counted = registrations.begin(&crate::auth::network(address), self.now_ms());
        counted.map_err(|early| ApiError::TooManyRequests {
            retry_after_s: early.wait_ms.div_euclid(1000) + 1,
        })
    }
}
