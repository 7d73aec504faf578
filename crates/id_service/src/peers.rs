//! The peers: services whose nodes and clocks are checked.

use std::{sync::Arc, time::Duration};

use driftline_runtime::{FaultLogs, Weight, now_ms, show_ms};
use tokio::time::timeout;

use super::{Issuer, blocking::blocking, sanity::Peer};

/// Services of the same layout and datacenter, each as `HOST:PORT`.
pub(super) struct Peers {
    addresses: Vec<String>,
    silent: FaultLogs<String>,
}

impl Peers {
    pub(super) fn new(addresses: Vec<String>) -> Self {
        Self {
            addresses,
            silent: FaultLogs::default(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Asks all peers. Logs a warning for each that does not answer.
    pub(super) async fn ask(&self, issuer: &Arc<Issuer>) -> Vec<Peer> {
        let asked = self
            .addresses
            .iter()
            .map(|address| self.ask_one(address, issuer));
        let answers = futures_util::future::join_all(asked).await;
        answers.into_iter().flatten().collect()
    }

    async fn ask_one(&self, address: &str, issuer: &Arc<Issuer>) -> Option<Peer> {
        let (of_thread, issuer) = (address.to_owned(), Arc::clone(issuer));
        let asked = blocking(move || Peer::ask(&of_thread, &issuer));
        // Resolving the name has no timeout of its own.
        let error = match timeout(MAX_ASKING, asked).await {
            Ok(Ok(Ok(peer))) => {
                if let Some(silent_ms) = self.silent.succeeded(&peer.address, now_ms()) {
                    tracing::warn!(%address, "a peer answers again, after {}", show_ms(silent_ms));
                }
                return Some(peer);
            }
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        let of = address.to_owned();
        if self.silent.failed(of, Weight::Lasting, now_ms()) {
            tracing::warn!(%address, error, "a peer did not answer");
        }
        None
    }
}

const MAX_ASKING: Duration = Duration::from_secs(8);

#[cfg(test)]
mod tests {
    use driftline_id::{ClockPolicy, Layout, Node, Window, clock::SystemClock};

    use super::{super::SharedClock, *};
    use driftline_runtime::testing::Warnings;

    #[tokio::test]
    async fn a_silent_peer_is_logged_once() {
        let (warnings, _guard) = Warnings::listen();
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = closed.local_addr().unwrap().to_string();
        drop(closed);
        let node = Node::new(&Layout::TWITTER, 1).unwrap();
        let window = Window::unrecorded_ids_may_repeat(node);
        let clock: SharedClock = Arc::new(SystemClock);
        let issuer = Arc::new(Issuer::new(window, clock, ClockPolicy::Refuse).unwrap());
        let peers = Peers::new(vec![address]);
        for _ in 0..3 {
            assert!(peers.ask(&issuer).await.is_empty());
        }
        assert_eq!(warnings.times("a peer did not answer"), 1);
    }
}
