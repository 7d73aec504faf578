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
fn a_clock_that_is_held_to_the_commit_keeps_the_order_of_one_database() {
    assert!(holds(ONE_DATABASE));
}

#[test]
fn a_clock_that_is_free_before_the_commit_breaks_it() {
    assert!(!holds(Protocol {
        clock: Clock::FreeOnceTaken,
        ..ONE_DATABASE
    }));
}

#[test]
fn a_clock_that_is_held_to_the_commit_breaks_it_where_nodes_show_commits_later() {
    assert!(!holds(Protocol {
        nodes: 2,
        visibility: Visibility::NodeByNode,
        ..ONE_DATABASE
    }));
}

/// Each node shows a commit at once, but readers ask one node after the other.
#[test]
fn a_clock_that_is_held_to_the_commit_breaks_it_where_readers_have_a_snapshot_of_each_node() {
    assert!(!holds(Protocol {
        nodes: 2,
        ..ONE_DATABASE
    }));
}

#[test]
fn reserved_ids_and_a_settled_id_keep_it_on_several_nodes() {
    assert!(holds(SEVERAL_NODES));
}

#[test]
fn a_settled_id_keeps_it_on_one_database_too() {
    assert!(holds(Protocol {
        nodes: 1,
        ..SEVERAL_NODES
    }));
}

#[test]
fn a_fence_decides_a_reservation_as_well_as_the_row() {
    assert!(holds(Protocol {
        given_up: GivenUp::WhenFenced,
        ..SEVERAL_NODES
    }));
}

#[test]
fn a_reservation_that_nothing_decides_lets_a_late_commit_break_it() {
    assert!(!holds(Protocol {
        given_up: GivenUp::AtOnce,
        ..SEVERAL_NODES
    }));
}

#[test]
fn a_settled_id_that_is_read_after_the_rows_breaks_it() {
    assert!(!holds(Protocol {
        bound: Bound::SettledLast,
        ..SEVERAL_NODES
    }));
}

/// A commit whose second phase is late on a node: the reservation ends when the first has returned.
#[test]
fn a_settled_id_does_not_help_where_nodes_show_commits_after_they_returned() {
    assert!(!holds(Protocol {
        visibility: Visibility::NodeByNode,
        ..SEVERAL_NODES
    }));
}
