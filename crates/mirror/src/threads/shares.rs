//! The shares of clients and upstreams in what is fetched for them, so that nobody takes all of it.

use std::collections::HashMap;

use driftline_store::Owner;

use super::{KnownRequest, RECENT_MS, ThreadRequest, Tried, Wanted};

impl ThreadRequest {
    /// Whether a client, or all clients of an upstream or of a credential, have so much under way that there is no room
    /// for this request.
    pub(super) fn is_crowded_out(
        &self,
        client: Owner,
        tried: &HashMap<ThreadRequest, Tried>,
        now_ms: i64,
    ) -> bool {
        let mut of_client = Use::default();
        let mut of_upstream = Use::default();
        let mut of_addresses = Use::default();
        for (other, tried) in tried {
            if tried.client == client {
                of_client.count(&tried.known, now_ms);
            }
            if other.instance == self.instance {
                of_upstream.count(&tried.known, now_ms);
                if other.is_address() && other.source == self.source {
                    of_addresses.count(&tried.known, now_ms);
                }
            }
        }
        of_client.running >= MAX_OF_CLIENT
            || of_client.recent >= MAX_RECENT_OF_CLIENT
            || of_upstream.running >= MAX_OF_UPSTREAM
            // Anybody can make up as many addresses as they like.
            || self.is_address()
                && (of_addresses.running >= MAX_ADDRESSES
                    || of_addresses.recent >= MAX_RECENT_ADDRESSES)
    }

    fn is_address(&self) -> bool {
        !matches!(self.wanted, Wanted::Thread(_) | Wanted::History(_))
    }
}

/// How much is used of a share.
#[derive(Default)]
struct Use {
    running: usize,
    /// What runs, or ended a short while ago.
    recent: usize,
}

impl Use {
    fn count(&mut self, known: &KnownRequest, now_ms: i64) {
        self.running += usize::from(matches!(known, KnownRequest::Running(_)));
        self.recent += usize::from(known.serves(now_ms, RECENT_MS));
    }
}

/// Requests of one client at a time.
pub(super) const MAX_OF_CLIENT: usize = 4;
/// Requests of one client that run or ended within a minute.
const MAX_RECENT_OF_CLIENT: usize = 100;
/// Requests to one upstream at a time: half of all.
pub(super) const MAX_OF_UPSTREAM: usize = 8;
/// Addresses and names that are asked for with one credential at a time.
const MAX_ADDRESSES: usize = 2;
/// Addresses and names of one credential that are asked for, or were within a minute.
const MAX_RECENT_ADDRESSES: usize = 100;

#[cfg(test)]
mod tests {
    use driftline_core::upstream_id::UpstreamId;
    use driftline_store::{InstanceId, LocalAccountId};
    use tokio::sync::watch;

    use super::*;

    const NOW_MS: i64 = 1_000_000;

    fn client(number: u64) -> Owner {
        Owner::Account(LocalAccountId::new(number))
    }

    fn thread(instance: u64, post: usize) -> ThreadRequest {
        ThreadRequest {
            instance: InstanceId::new(instance),
            wanted: Wanted::Thread(UpstreamId::new(post.to_string())),
            source: None,
            owner: None,
        }
    }

    fn running(client: Owner) -> Tried {
        let known = KnownRequest::Running(watch::channel(None).1);
        Tried { client, known }
    }

    fn ended(client: Owner, at_ms: i64) -> Tried {
        let again_ms = at_ms + RECENT_MS;
        let known = KnownRequest::Ended { at_ms, again_ms };
        Tried { client, known }
    }

    #[test]
    fn a_client_leaves_room_for_others() {
        let of_ann = (0..MAX_OF_CLIENT).map(|post| (thread(post as u64, 1), running(client(1))));
        let tried: HashMap<_, _> = of_ann.collect();
        let request = thread(77, 1);
        assert!(request.is_crowded_out(client(1), &tried, NOW_MS));
        assert!(!request.is_crowded_out(client(2), &tried, NOW_MS));
        assert!(!request.is_crowded_out(Owner::Operator, &tried, NOW_MS));
    }

    #[test]
    fn a_client_starts_so_many_in_a_minute() {
        let all = (0..MAX_RECENT_OF_CLIENT).map(|post| (thread(1, post), ended(client(1), NOW_MS)));
        let tried: HashMap<_, _> = all.collect();
        let request = thread(77, 1);
        assert!(request.is_crowded_out(client(1), &tried, NOW_MS + RECENT_MS - 1));
        assert!(!request.is_crowded_out(client(1), &tried, NOW_MS + RECENT_MS));
        assert!(!request.is_crowded_out(client(2), &tried, NOW_MS));
    }

    #[test]
    fn an_upstream_that_answers_nobody_leaves_room_for_others() {
        let all = (0..MAX_OF_UPSTREAM).map(|post| (thread(1, post), running(client(post as u64))));
        let tried: HashMap<_, _> = all.collect();
        assert!(thread(1, 100).is_crowded_out(client(77), &tried, NOW_MS));
        assert!(!thread(2, 100).is_crowded_out(client(77), &tried, NOW_MS));
    }
}
