//! Exhaustive models of how writers take IDs of now and readers see them: the law is that once a reader has
//! seen an ID, nothing smaller appears later. IDs of history are no part of them: those may appear anywhere below.
//!
//! Each model visits all interleavings of three writers and two readers, with a crash of a writer
//! between any two steps. The protocols that are in use must hold; those that are known to break the
//! law must be caught, or the model proves nothing.

mod protocol;
mod world;

use stateright::{Checker, Model};

use protocol::{Bound, Clock, GivenUp, Protocol, Visibility};
use world::World;

/// One database: the clock's row is held to the commit, and readers read what there is.
const ONE_DATABASE: Protocol = Protocol {
    nodes: 1,
    clock: Clock::HeldToCommit,
    visibility: Visibility::AtCommit,
    bound: Bound::None,
    given_up: GivenUp::AtOnce,
};

/// Rows on several nodes, with one snapshot on each: IDs are reserved, and readers read up to the
/// settled ID, which they ask for first.
const SEVERAL_NODES: Protocol = Protocol {
    nodes: 2,
    clock: Clock::Reserved,
    visibility: Visibility::AtCommit,
    bound: Bound::SettledFirst,
    given_up: GivenUp::WhenRowIsFree,
};

/// Visits every state; whether the law held in each.
fn holds(protocol: Protocol) -> bool {
    let checker = World { protocol }.checker().spawn_bfs().join();
    assert!(checker.is_done(), "{protocol:?} was not visited whole");
    checker.assert_any_discovery("everything is seen");
    checker.discovery("order seen is order kept").is_none()
}

#[test]
fn protocols_in_use_keep_the_order_that_readers_saw() {
    for protocol in [
        ONE_DATABASE,
        SEVERAL_NODES,
        // A settled ID does on one database, too.
        Protocol {
            nodes: 1,
            ..SEVERAL_NODES
        },
        // A fence decides a reservation as well as the row.
        Protocol {
            given_up: GivenUp::WhenFenced,
            ..SEVERAL_NODES
        },
    ] {
        assert!(holds(protocol), "{protocol:?}");
    }
}

#[test]
fn protocols_that_break_it_are_caught() {
    for protocol in [
        Protocol {
            clock: Clock::FreeOnceTaken,
            ..ONE_DATABASE
        },
        // A clock that is held to the commit, where nodes show commits later.
        Protocol {
            nodes: 2,
            visibility: Visibility::NodeByNode,
            ..ONE_DATABASE
        },
        // Each node shows a commit at once, but readers ask one node after the other.
        Protocol {
            nodes: 2,
            ..ONE_DATABASE
        },
        // Nothing decides a reservation, and a commit is late.
        Protocol {
            given_up: GivenUp::AtOnce,
            ..SEVERAL_NODES
        },
        // The settled ID is read after the rows.
        Protocol {
            bound: Bound::SettledLast,
            ..SEVERAL_NODES
        },
        // A commit whose second phase is late on a node: the reservation ends when the first has returned.
        Protocol {
            visibility: Visibility::NodeByNode,
            ..SEVERAL_NODES
        },
    ] {
        assert!(!holds(protocol), "{protocol:?}");
    }
}
