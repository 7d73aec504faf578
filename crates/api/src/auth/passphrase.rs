//! Hashes of passphrases: Argon2id over the normalised passphrase followed by its salt.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::available_parallelism,
};

use argon2::{Algorithm, Argon2, Params, Version};
use driftline_core::social::{HashCost, Passphrase, PassphraseHash};
use secrecy::{ExposeSecret as _, SecretSlice};
use subtle::ConstantTimeEq as _;
use tokio::{sync::Semaphore, task};

/// Hashes and verifies passphrases away from the threads that serve, and only so many at once: each takes
/// 19 MiB and a core for some 30 ms. Clones share the bound.
#[derive(Clone, Debug)]
pub struct PassphraseHasher(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    cost: HashCost,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    hashed: AtomicU64,
    /// What a passphrase is held against where there is no account.
    dummy: PassphraseHash,
}

/// Whether a passphrase is the right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// It is.
    Right {
        /// Its new hash, to be stored, where the stored one has another cost than hashes have today.
        rehashed: Option<PassphraseHash>,
    },
    /// It is not, or there is no account.
    Wrong,
}

/// Why no passphrase was hashed. Never holds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// Too many wait: come again.
    #[error("too many passphrases are being checked; try again in a moment")]
    Busy,
    /// A stored hash has a cost or a normalisation that this version does not know.
    #[error("a stored passphrase cannot be checked by this version")]
    Unreadable,
    /// The system gave no random numbers, or the task was ended.
    #[error("the passphrase could not be hashed")]
    Failed,
}

impl Default for PassphraseHasher {
    /// With today's cost, on half of the cores.
    fn default() -> Self {
        let cores = available_parallelism().map_or(2, usize::from);
        Self::new(HashCost::DEFAULT, cores.div_ceil(2).min(MAX_PARALLEL))
    }
}

impl PassphraseHasher {
    /// With this cost, at most `parallel` at once.
    pub fn new(cost: HashCost, parallel: usize) -> Self {
        Self(Arc::new(Inner {
            cost,
            places: Arc::new(Semaphore::new(parallel.max(1))),
            waiting: AtomicUsize::new(0),
            hashed: AtomicU64::new(0),
            dummy: PassphraseHash {
                // No passphrase has it, and none is looked for: it counts as wrong.
                hash: vec![0; HASH_BYTES],
                salt: [0; 16],
                cost,
                normalization: Passphrase::NORMALIZATION,
            },
        }))
    }

    /// The hash of a passphrase that somebody chose, with a salt of its own.
    ///
    /// # Errors
    /// [`HashError`].
    pub async fn hash(&self, passphrase: Passphrase) -> Result<PassphraseHash, HashError> {
        let cost = self.0.cost;
        self.in_turn(move || hash(&passphrase, new_salt()?, cost))
            .await
    }

    /// Verifies a presented passphrase against a stored one. Without a stored one it takes as long.
    ///
    /// # Errors
    /// [`HashError`].
    pub async fn verify(
        &self,
        presented: Passphrase,
        stored: Option<PassphraseHash>,
    ) -> Result<Verified, HashError> {
        let (cost, is_known) = (self.0.cost, stored.is_some());
        let stored = stored.unwrap_or_else(|| self.0.dummy.clone());
        if stored.normalization != Passphrase::NORMALIZATION {
            return Err(HashError::Unreadable);
        }
        self.in_turn(move || {
            let found = hash(&presented, stored.salt, stored.cost)?;
            let is_same: bool = found.hash.ct_eq(&stored.hash).into();
            if !(is_same && is_known) {
                return Ok(Verified::Wrong);
            }
            let rehashed = match stored.cost == cost {
                true => None,
                false => Some(hash(&presented, new_salt()?, cost)?),
            };
            Ok(Verified::Right { rehashed })
        })
        .await
    }

    /// How many tasks were done, right or wrong, for known accounts and others.
    pub fn hashed(&self) -> u64 {
        self.0.hashed.load(Ordering::Relaxed)
    }

    /// Runs a task when it is its turn. The task keeps its place to its end, also if nobody waits for it
    /// any more.
    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HashError> + Send + 'static,
    ) -> Result<T, HashError> {
        let _waiting = Waiting::begin(&self.0)?;
        let places = Arc::clone(&self.0.places);
        let place = places.acquire_owned().await;
        let place = place.map_err(|_| HashError::Failed)?;
        let inner = Arc::clone(&self.0);
        let done = task::spawn_blocking(move || {
            let done = work();
            inner.hashed.fetch_add(1, Ordering::Relaxed);
            drop(place);
            done
        });
        done.await.map_err(|_| HashError::Failed)?
    }
}

/// One of those that wait, or are at work.
struct Waiting<'a>(&'a Inner);

impl<'a> Waiting<'a> {
    fn begin(inner: &'a Inner) -> Result<Self, HashError> {
        let before = inner.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Self(inner);
        match before < MAX_WAITING {
            true => Ok(waiting),
            false => Err(HashError::Busy),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

fn hash(
    passphrase: &Passphrase,
    salt: [u8; 16],
    cost: HashCost,
) -> Result<PassphraseHash, HashError> {
    if cost.memory_kib > MAX_MEMORY_KIB || cost.passes > MAX_PASSES || cost.lanes > MAX_LANES {
        return Err(HashError::Unreadable);
    }
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(HASH_BYTES));
    let params = params.map_err(|_| HashError::Unreadable)?;
    let text = passphrase.expose().as_bytes();
    let salted: SecretSlice<u8> = [text, &salt].concat().into();
    let mut hash = vec![0; HASH_BYTES];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(salted.expose_secret(), &salt, &mut hash)
        .map_err(|_| HashError::Unreadable)?;
    Ok(PassphraseHash {
        hash,
        salt,
        cost,
        normalization: Passphrase::NORMALIZATION,
    })
}

fn new_salt() -> Result<[u8; 16], HashError> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|_| HashError::Failed)?;
    Ok(salt)
}

const HASH_BYTES: usize = 32;
/// No stored hash takes more than a gigabyte, or minutes, to check, whoever wrote it.
const MAX_MEMORY_KIB: u32 = 1 << 20;
const MAX_PASSES: u32 = 64;
const MAX_LANES: u32 = 16;
/// Of 19 MiB each.
const MAX_PARALLEL: usize = 4;
/// Some seconds of work.
const MAX_WAITING: usize = 256;

#[cfg(test)]
mod tests {
    use secrecy::SecretString;
    use tokio::task::JoinSet;

    use super::*;

    const CHEAP: HashCost = HashCost {
        memory_kib: 64,
        passes: 1,
        lanes: 1,
    };

    fn chosen(text: &str) -> Passphrase {
        Passphrase::choose(&SecretString::from(text)).unwrap()
    }

    fn presented(text: &str) -> Passphrase {
        Passphrase::present(&SecretString::from(text))
    }

    #[tokio::test]
    async fn a_passphrase_is_right_however_its_spaces_are_typed() {
        let hasher = PassphraseHasher::new(CHEAP, 2);
        let stored = hasher.hash(chosen("correct horse")).await.unwrap();
        for (text, is_right) in [
            ("correct horse", true),
            ("correct \u{3000}\thorse", true),
            ("Correct horse", false),
            ("correct horse ", false),
            ("", false),
        ] {
            let verified = hasher.verify(presented(text), Some(stored.clone())).await;
            let expected = match is_right {
                true => Verified::Right { rehashed: None },
                false => Verified::Wrong,
            };
            assert_eq!(verified, Ok(expected), "{text:?}");
        }
        let again = hasher.hash(chosen("correct horse")).await.unwrap();
        assert!(again.salt != stored.salt && again.hash != stored.hash);
    }

    #[test]
    fn the_hash_is_of_the_passphrase_followed_by_the_salt() {
        let salt = *b"0123456789abcdef";
        let found = hash(&chosen("correct  horse"), salt, CHEAP).unwrap();
        let params = Params::new(64, 1, 1, None).unwrap();
        let mut expected = [0; 32];
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(b"correct horse0123456789abcdef", &salt, &mut expected)
            .unwrap();
        assert_eq!(found.hash, expected);
        let debug = format!("{found:?}");
        assert!(!debug.contains("48, 49") && !debug.contains(&format!("{}", expected[0])));
    }

    #[tokio::test]
    async fn a_hash_of_another_cost_is_right_and_replaced() {
        let before = PassphraseHasher::new(CHEAP, 1);
        let stored = before.hash(chosen("correct horse")).await.unwrap();
        let dear = HashCost { passes: 2, ..CHEAP };
        let now = PassphraseHasher::new(dear, 1);
        let verified = now
            .verify(presented("correct horse"), Some(stored.clone()))
            .await;
        let Ok(Verified::Right {
            rehashed: Some(new),
        }) = verified
        else {
            panic!("{verified:?}");
        };
        assert_eq!(new.cost, dear);
        let verified = now.verify(presented("correct horse"), Some(new)).await;
        assert_eq!(verified, Ok(Verified::Right { rehashed: None }));
        let wrong = now.verify(presented("wrong horse"), Some(stored)).await;
        assert_eq!(wrong, Ok(Verified::Wrong));
    }

    #[tokio::test]
    async fn who_is_unknown_costs_a_hash_too() {
        let hasher = PassphraseHasher::new(CHEAP, 1);
        let verified = hasher.verify(presented("correct horse"), None).await;
        assert_eq!((verified, hasher.hashed()), (Ok(Verified::Wrong), 1));
        // Not even who finds the text of the dummy's hash is let in.
        let dummy = hash(&presented("x"), [0; 16], CHEAP).unwrap().hash;
        let open = PassphraseHasher(Arc::new(Inner {
            cost: CHEAP,
            places: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            hashed: AtomicU64::new(0),
            dummy: PassphraseHash {
                hash: dummy,
                salt: [0; 16],
                cost: CHEAP,
                normalization: 1,
            },
        }));
        let verified = open.verify(presented("x"), None).await;
        assert_eq!(verified, Ok(Verified::Wrong));
    }

    #[tokio::test]
    async fn what_this_version_does_not_know_is_an_error() {
        let hasher = PassphraseHasher::new(CHEAP, 1);
        let stored = hasher.hash(chosen("correct horse")).await.unwrap();
        let newer = PassphraseHash {
            normalization: 2,
            ..stored.clone()
        };
        let with = |cost| PassphraseHash {
            cost,
            ..stored.clone()
        };
        let odd = with(HashCost { passes: 0, ..CHEAP });
        let large = with(HashCost {
            memory_kib: MAX_MEMORY_KIB + 1,
            ..CHEAP
        });
        let long = with(HashCost {
            passes: u32::MAX,
            ..CHEAP
        });
        for unreadable in [newer, odd, large, long] {
            let verified = hasher
                .verify(presented("correct horse"), Some(unreadable))
                .await;
            assert_eq!(verified, Err(HashError::Unreadable));
        }
    }

    #[tokio::test]
    async fn so_many_at_once_and_no_more_wait() {
        let hasher = PassphraseHasher::new(CHEAP, 1);
        let held = Arc::clone(&hasher.0.places).acquire_owned().await.unwrap();
        let mut waiting = JoinSet::new();
        for _ in 0..MAX_WAITING {
            let hasher = hasher.clone();
            waiting.spawn(async move { hasher.verify(presented("x"), None).await });
        }
        while hasher.0.waiting.load(Ordering::Relaxed) < MAX_WAITING {
            task::yield_now().await;
        }
        assert_eq!(hasher.hashed(), 0, "no place is free");
        let refused = hasher.verify(presented("x"), None).await;
        assert_eq!(refused, Err(HashError::Busy));
        drop(held);
        while let Some(verified) = waiting.join_next().await {
            assert_eq!(verified.unwrap(), Ok(Verified::Wrong));
        }
        assert_eq!(hasher.0.waiting.load(Ordering::Relaxed), 0);
        assert!(hasher.verify(presented("x"), None).await.is_ok());
    }
}
