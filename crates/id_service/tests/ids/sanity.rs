//! The sanity check of services and their peers.

use std::sync::Arc;

use driftline_id::{ClockPolicy, Layout, Node, Window, clock::ManualClock};
use driftline_id_service::{
    Issuer, Peer, SanityError, SharedClock, check, mean_offset_ms,
    thrift::{Limits, Listener},
};

use crate::support::{START_MS, serve, still};

fn peer_of(issuer: Arc<Issuer>, own: &Issuer) -> (Peer, Listener) {
    let server = serve(issuer, Limits::default());
    (
        Peer::ask(&server.address().to_string(), own).unwrap(),
        server,
    )
}

fn with_layout(layout: Layout, number: u64) -> Arc<Issuer> {
    let clock: SharedClock = Arc::new(ManualClock::at_ms(START_MS));
    let window = Window::unrecorded_ids_may_repeat(Node::new(&layout, number).unwrap());
    Arc::new(Issuer::new(window, clock, ClockPolicy::Refuse).unwrap())
}

#[test]
fn services_that_go_together() {
    let (own, _) = still(32 + 1, ClockPolicy::Refuse);
    let peers: Vec<_> = [32 + 2, 32 + 3]
        .map(|number| peer_of(still(number, ClockPolicy::Refuse).0, &own))
        .into();
    let peers: Vec<Peer> = peers.into_iter().map(|(peer, _)| peer).collect();
    assert_eq!(check(&own, &peers), Ok(()));
    assert_eq!(mean_offset_ms(&peers), Some(0));
    assert_eq!(check(&own, &[]), Ok(()));
    assert_eq!(mean_offset_ms(&[]), None);
}

#[test]
fn a_node_is_had_by_one() {
    let (own, _) = still(1, ClockPolicy::Refuse);
    let (same, server) = peer_of(still(1, ClockPolicy::Refuse).0, &own);
    let address = server.address().to_string();
    let node = 1;
    assert_eq!(
        check(&own, &[same]),
        Err(SanityError::SameNode { address, node })
    );
    let (first, _server) = peer_of(still(2, ClockPolicy::Refuse).0, &own);
    let (second, server) = peer_of(still(2, ClockPolicy::Refuse).0, &own);
    let (address, node) = (server.address().to_string(), 2);
    assert_eq!(
        check(&own, &[first, second]),
        Err(SanityError::SharedNode { address, node })
    );
}

/// Not the worker alone: Discord's layout has processes besides.
#[test]
fn nodes_are_compared_whole() {
    let own = with_layout(Layout::DISCORD, 0);
    let (other_process, _server) = peer_of(with_layout(Layout::DISCORD, 1), &own);
    let (other_worker, _server2) = peer_of(with_layout(Layout::DISCORD, 32), &own);
    assert_eq!(check(&own, &[other_process, other_worker]), Ok(()));
    let (same, server) = peer_of(with_layout(Layout::DISCORD, 0), &own);
    let (address, node) = (server.address().to_string(), 0);
    assert_eq!(
        check(&own, &[same]),
        Err(SanityError::SameNode { address, node })
    );
}

#[test]
fn a_peer_is_of_the_same_datacenter() {
    let (own, _) = still(1, ClockPolicy::Refuse);
    let (peer, server) = peer_of(still(32 + 2, ClockPolicy::Refuse).0, &own);
    let (address, theirs, own_one) = (server.address().to_string(), 1, 0);
    let refused = SanityError::Datacenter {
        address,
        theirs,
        own: own_one,
    };
    assert_eq!(check(&own, &[peer]), Err(refused));
}

/// A peer's layout is recognised by its IDs.
#[test]
fn a_peer_is_of_the_same_layout() {
    let (own, _) = still(1, ClockPolicy::Refuse);
    for layout in [
        Layout::PULSATE,
        Layout::MASTODON,
        Layout::TWITTER.with_epoch(START_MS - 1_000_000),
    ] {
        let number = if layout == Layout::MASTODON { 0 } else { 2 };
        let (peer, server) = peer_of(with_layout(layout, number), &own);
        let address = server.address().to_string();
        let refused = SanityError::Layout {
            address,
            layout: "twitter",
        };
        assert_eq!(check(&own, &[peer]), Err(refused), "{}", layout.name());
    }
}

/// The mean of the peers' clocks counts, to 10 s either way.
#[test]
fn clocks_are_near_to_their_mean() {
    let (own, _) = still(1, ClockPolicy::Refuse);
    let peer = |worker, ahead_ms: i64| {
        let now_ms = START_MS + ahead_ms;
        let node = Node::new(&Layout::TWITTER, worker as u64).unwrap();
        let clock = ManualClock::at_ms(now_ms);
        let window = Window::unrecorded_ids_may_repeat(node);
        let theirs = Issuer::new(window, Arc::new(clock), ClockPolicy::Refuse).unwrap();
        Peer {
            address: "peer:1".to_owned(),
            worker,
            datacenter: 0,
            now_ms,
            own_now_ms: START_MS,
            id: theirs.try_one().unwrap() as i64,
        }
    };
    assert_eq!(check(&own, &[peer(2, 10_000), peer(3, 10_000)]), Ok(()));
    assert_eq!(check(&own, &[peer(2, 29_000), peer(3, -15_000)]), Ok(()));
    for ahead_ms in [10_001, -10_001] {
        let offset_ms = -ahead_ms;
        assert_eq!(
            check(&own, &[peer(2, ahead_ms), peer(3, ahead_ms)]),
            Err(SanityError::Clock { offset_ms })
        );
    }
}

#[test]
fn a_peer_that_is_no_such_service_is_none() {
    let (own, _) = still(1, ClockPolicy::Refuse);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    assert!(Peer::ask(&address, &own).is_err());
    assert!(Peer::ask("no address", &own).is_err());
}
