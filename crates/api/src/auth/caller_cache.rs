//! Callers by the hashes of their tokens, as they were read lately: a client that asks often costs one
//! read of the store a second. What this process revokes or freezes is forgotten at once; what others do
//! is noticed when the entry is too old.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use driftline_store::{LocalAccountId, social::SecretHash};
use parking_lot::RwLock;

use super::caller::Caller;

/// Callers that were read lately. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct CallerCache(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Rises with each change of tokens or accounts by this process.
    generation: AtomicU64,
    entries: RwLock<HashMap<SecretHash, Entry>>,
}

#[derive(Debug)]
struct Entry {
    caller: Caller,
    read_at: Instant,
    expires_at_ms: i64,
}

/// When a read of the store began.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadBegin {
    generation: u64,
    at: Instant,
}

impl CallerCache {
    /// Forgets the tokens of an account, after its state changed or some were revoked.
    pub fn forget(&self, account: LocalAccountId) {
        self.0.generation.fetch_add(1, Ordering::SeqCst);
        let mut entries = self.0.entries.write();
        entries.retain(|_, entry| entry.caller.account_id() != Some(account));
    }

    /// Forgets all tokens.
    pub fn forget_all(&self) {
        self.0.generation.fetch_add(1, Ordering::SeqCst);
        self.0.entries.write().clear();
    }

    /// The caller with that token, if it was read lately.
    pub(super) fn find(&self, token: &SecretHash, now: Instant, now_ms: i64) -> Option<Caller> {
        let entries = self.0.entries.read();
        let entry = entries.get(token)?;
        let is_fresh = now.duration_since(entry.read_at) < FRESH && now_ms < entry.expires_at_ms;
        is_fresh.then(|| entry.caller.clone())
    }

    /// Has to be called before the store is read.
    pub(super) fn begin_read(&self, now: Instant) -> ReadBegin {
        ReadBegin {
            generation: self.0.generation.load(Ordering::SeqCst),
            at: now,
        }
    }

    /// Keeps what was read, unless something changed since the read began.
    pub(super) fn keep(
        &self,
        token: SecretHash,
        caller: &Caller,
        begin: ReadBegin,
        expires_at_ms: i64,
    ) {
        let mut entries = self.0.entries.write();
        if self.0.generation.load(Ordering::SeqCst) != begin.generation {
            return;
        }
        if entries.len() >= MAX_ENTRIES {
            entries.retain(|_, entry| begin.at.duration_since(entry.read_at) < FRESH);
        }
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        let entry = Entry {
            caller: caller.clone(),
            read_at: begin.at,
            expires_at_ms,
        };
        entries.insert(token, entry);
    }
}

/// Shorter than the second within which other processes have to notice.
const FRESH: Duration = Duration::from_millis(800);
const MAX_ENTRIES: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;
    const ANN: LocalAccountId = LocalAccountId::new(7);
    const TOKEN: SecretHash = SecretHash::new([1; 32]);

    fn kept(cache: &CallerCache, now: Instant) {
        let begin = cache.begin_read(now);
        cache.keep(TOKEN, &Caller::of_account_for_tests(ANN), begin, NOW_MS + 1);
    }

    #[test]
    fn an_entry_is_used_for_less_than_a_second_and_no_longer_than_the_token() {
        let (cache, now) = (CallerCache::default(), Instant::now());
        kept(&cache, now);
        let found = |later_ms, now_ms| {
            let later = now + Duration::from_millis(later_ms);
            cache.find(&TOKEN, later, now_ms).is_some()
        };
        assert!(found(0, NOW_MS) && found(799, NOW_MS));
        assert!(!found(800, NOW_MS) && !found(0, NOW_MS + 1));
    }

    #[test]
    fn what_changed_is_forgotten_at_once_also_by_reads_under_way() {
        let (cache, now) = (CallerCache::default(), Instant::now());
        let found = || cache.find(&TOKEN, now, NOW_MS).is_some();
        kept(&cache, now);
        cache.forget(LocalAccountId::new(8));
        assert!(found(), "of another account");
        cache.forget(ANN);
        assert!(!found());
        let begin = cache.begin_read(now);
        cache.forget(ANN);
        cache.keep(TOKEN, &Caller::of_account_for_tests(ANN), begin, NOW_MS + 1);
        assert!(!found(), "it was read before");
        kept(&cache, now);
        cache.forget_all();
        assert!(!found());
    }

    #[test]
    fn many_tokens_take_bounded_room() {
        let (cache, now) = (CallerCache::default(), Instant::now());
        for number in 0..MAX_ENTRIES as u64 + 10 {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_be_bytes());
            let begin = cache.begin_read(now);
            let caller = Caller::of_account_for_tests(ANN);
            cache.keep(SecretHash::new(hash), &caller, begin, NOW_MS + 1);
        }
        assert!(cache.0.entries.read().len() <= MAX_ENTRIES);
    }
}
