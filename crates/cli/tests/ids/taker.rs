//! A client that takes IDs while something happens to the server.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

use driftline_id_service::thrift::{Client, ClientError};

use crate::{
    service::{Service, assert_rising, client, node_of},
    support::wait_for,
};

/// Takes one ID after the other, until the stop signal or until the connection fails.
pub struct Taker {
    shared: Arc<Shared>,
    thread: JoinHandle<Taken>,
}

/// What it got.
#[derive(Debug, Default)]
pub struct Taken {
    pub ids: Vec<u64>,
    /// What the service refused with; the same in a row is kept once.
    pub refused: Vec<String>,
    /// Why the connection failed.
    pub broken: Option<ClientError>,
}

#[derive(Default)]
struct Shared {
    count: AtomicUsize,
    stopped: AtomicBool,
}

impl Taker {
    pub fn start(address: SocketAddr) -> Self {
        let client = client(address);
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let thread = thread::spawn(move || of_thread.take(client));
        Self { shared, thread }
    }

    pub fn count(&self) -> usize {
        self.shared.count.load(Ordering::Relaxed)
    }

    /// Waits until it has that many IDs more.
    pub fn wait_for_more(&self, count: usize) {
        let enough = self.count() + count;
        wait_for("IDs are taken", || {
            self.count() >= enough || self.thread.is_finished()
        });
    }

    /// Tells it to stop.
    pub fn stop(self) -> Taken {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.end()
    }

    /// Waits until its connection fails.
    pub fn end(self) -> Taken {
        self.thread.join().unwrap()
    }
}

impl Shared {
    fn take(&self, mut client: Client) -> Taken {
        let mut taken = Taken::default();
        while !self.stopped.load(Ordering::Relaxed) {
            match client.call("get_id", Some("a-taker")) {
                Ok(id) => {
                    taken.ids.push(u64::try_from(id).unwrap());
                    self.count.fetch_add(1, Ordering::Relaxed);
                }
                Err(ClientError::Refused(why)) => {
                    if taken.refused.last() != Some(&why) {
                        taken.refused.push(why);
                    }
                }
                Err(error) => {
                    taken.broken = Some(error);
                    break;
                }
            }
        }
        taken
    }
}

/// A taker of each of the services, which have the nodes 0, 1 and so on.
pub fn start_all(services: &[Service]) -> Vec<Taker> {
    let start = |(node, service): (u64, &Service)| {
        assert_eq!(service.node, node);
        Taker::start(service.thrift)
    };
    (0..).zip(services).map(start).collect()
}

/// Takes that many IDs more from each of the nodes 0, 1 and so on, whose IDs rise and are not in
/// `all` yet.
pub fn all_differ(takers: Vec<Taker>, more: usize, all: &mut HashSet<u64>) {
    for (node, taker) in (0..).zip(takers) {
        taker.wait_for_more(more);
        let taken = taker.stop();
        assert!(taken.ids.iter().all(|&id| node_of(id) == node));
        assert_rising(&taken.ids);
        assert!(taken.ids.iter().all(|id| all.insert(*id)), "no ID twice");
    }
}
