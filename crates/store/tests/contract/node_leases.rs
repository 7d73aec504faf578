//! Node leases: one holder at a time, windows that never overlap, and a fence against the one
//! before.

mod laws;
mod rivals;

use std::iter;

use driftline_id::{
    ClockPolicy, Field, Generator, Layout, Node, TimeUnit, Window,
    clock::ManualClock,
    window::{BeginError, Lease, LeaseStore, RecordError, WindowConfig},
};
use driftline_store::{
    Root, Store, StoreError, Tx, database_clock,
    node_lease::{self, LEASE_MARGIN_MS, NodeHolding, NodeLease, NodeLeaseError, NodeLeases},
};

use crate::world::{on_both, read};

on_both!(
    the_lowest_free_node_is_taken,
    leases_are_listed,
    a_lease_outlasts_its_window_by_the_margin,
    a_released_node_begins_where_its_generator_got,
    a_lost_lease_stays_lost,
    an_ended_lease_that_is_still_free_is_renewed_and_released,
    a_renewal_that_failed_may_be_tried_again,
    a_renewal_without_an_answer_may_be_tried_again,
    each_lease_is_released_with_its_own_generator,
    a_node_far_ahead_of_the_clock_is_skipped,
    there_may_be_no_free_node,
    a_damaged_record_is_refused_and_never_begun_again,
);

const NOW_US: i64 = 1_800_000_000_000_000;
const SECOND_US: i64 = 1_000_000;
const WINDOW_CONFIG: WindowConfig = WindowConfig {
    length_ms: 3_000,
    max_clock_skew_ms: 60_000,
};
const LEASE_MS: i64 = 3_000 + LEASE_MARGIN_MS;

/// Four nodes.
const TINY: Layout = layout("tiny", &[Field::node("node", 2), Field::sequence(20)]);

const fn layout(name: &'static str, fields: &'static [Field]) -> Layout {
    match Layout::custom(name, TimeUnit::Millisecond, 1_700_000_000_000, 41, fields) {
        Ok(layout) => layout,
        Err(_) => panic!("the fields fill 63 bits"),
    }
}

fn nodes(store: &Store, holder: &str) -> NodeLeases {
    NodeLeases::new(store.clone(), TINY, WINDOW_CONFIG, holder)
}

fn node(number: u64) -> Node {
    Node::new(&TINY, number).expect("a node")
}

fn acquire(nodes: &NodeLeases, now_us: i64) -> (NodeLease, Window) {
    nodes.acquire(now_us).expect("a node")
}

fn generator(window: Window, clock: &ManualClock) -> Generator<ManualClock> {
    Generator::new(window, clock.clone(), ClockPolicy::Refuse).expect("a generator")
}

/// Makes IDs until the clock's tick has no more of them or `count` are made.
fn make(ids: &mut Generator<ManualClock>, count: usize) -> Vec<u64> {
    iter::from_fn(|| ids.try_next().ok()).take(count).collect()
}

fn write(store: &Store, mut job: impl FnMut(&mut Tx<'_>) -> u64 + Send + 'static) -> u64 {
    store
        .write_blocking(Root::none(), move |tx| Ok::<_, StoreError>(job(tx)))
        .expect("a write")
}

fn execute(store: &Store, sql: &'static str) -> u64 {
    write(store, move |tx| tx.execute(sql, &[]).expect("a statement"))
}

/// Lets the database's clock pass by so much, as far as the leases can tell.
fn pass(store: &Store, ms: i64) {
    write(store, move |tx| {
        tx.execute(
            "update node_lease set lease_until_ms = lease_until_ms - $1",
            &[&ms],
        )
        .expect("a statement")
    });
}

fn list(store: &Store) -> Vec<NodeHolding> {
    read(store, node_lease::list)
}

fn is_held(error: &NodeLeaseError) -> bool {
    matches!(error, NodeLeaseError::Held { .. })
}

fn is_lost(error: &NodeLeaseError) -> bool {
    matches!(error, NodeLeaseError::Lost { .. })
}

fn the_lowest_free_node_is_taken(store: &Store) {
    let clock = ManualClock::at_us(NOW_US);
    let [a, b, c] = ["a", "b", "c"].map(|holder| nodes(store, holder));
    let (first, first_window) = acquire(&a, NOW_US);
    let (second, _) = acquire(&b, NOW_US);
    let (third, _) = c.acquire_node(node(3), NOW_US).expect("the node 3");
    assert_eq!(first.node().number(), 0);
    assert_eq!(second.node().number(), 1);
    assert_eq!(third.node().number(), 3);
    assert_eq!([first.fence(), second.fence(), third.fence()], [1, 1, 1]);
    let retired = generator(first_window, &clock).retire();
    first.release(retired).expect("a release");
    let (again, window) = acquire(&c, NOW_US);
    assert_eq!((again.node().number(), again.fence()), (0, 2));
    assert_eq!(window.node(), again.node());
    assert_eq!(acquire(&c, NOW_US).0.node().number(), 2);
}

fn leases_are_listed(store: &Store) {
    assert_eq!(list(store), []);
    let (_held, window) = acquire(&nodes(store, "a\0b"), NOW_US);
    let (given_back, other_window) = acquire(&nodes(store, "c"), NOW_US + 7);
    let twitter = NodeLeases::new(store.clone(), Layout::TWITTER, WINDOW_CONFIG, "c");
    let _other_layout = acquire(&twitter, NOW_US);
    let clock = ManualClock::at_us(NOW_US + 7);
    given_back
        .release(generator(other_window, &clock).retire())
        .expect("a release");
    let listed = list(store);
    let names = |listed: &NodeHolding| (listed.layout.clone(), listed.node);
    assert_eq!(
        listed.iter().map(names).collect::<Vec<_>>(),
        [
            ("tiny".into(), 0),
            ("tiny".into(), 1),
            ("twitter".into(), 0)
        ]
    );
    assert_eq!(listed[0].holder.as_deref(), Some("a\u{fffd}b"));
    assert_eq!(
        (listed[0].from_us, listed[0].until_us),
        (window.from_us(), window.until_us())
    );
    assert_eq!((listed[0].fence, listed[1].holder.as_ref()), (1, None));
}

fn a_lease_outlasts_its_window_by_the_margin(store: &Store) {
    let ends_in_ms = || {
        let now_ms = read(store, |tx| Ok(database_clock::now_ms(tx)?));
        list(store)[0].lease_until_ms - now_ms
    };
    let assert_near = |ms: i64| {
        let found = ends_in_ms();
        assert!((ms - 4_000..=ms).contains(&found), "{found} for {ms}");
    };
    let (mut lease, _) = acquire(&nodes(store, "a"), NOW_US);
    assert_near(LEASE_MS);
    assert_eq!(lease.due_us(), NOW_US + 3 * SECOND_US / 5);
    pass(store, 8_000);
    lease.renew(lease.due_us() - 1).expect("nothing to do");
    assert_near(LEASE_MS - 8_000);
    lease.renew(lease.due_us()).expect("a renewal");
    assert_near(LEASE_MS);
    assert_eq!(lease.record().until_us(), NOW_US + 3_600_000);
    assert_eq!(list(store)[0].until_us, NOW_US + 3_600_000);

    // The window of a successor ends later than a length from now.
    pass(store, LEASE_MS);
    let (successor, window) = acquire(&nodes(store, "b"), NOW_US - 30 * SECOND_US);
    assert_eq!(successor.node(), lease.node());
    assert_eq!(window.until_us(), NOW_US + 3_787_500);
    assert_near(37_500 + LEASE_MARGIN_MS);
}

fn a_released_node_begins_where_its_generator_got(store: &Store) {
    let clock = ManualClock::at_us(NOW_US);
    let (lease, window) = acquire(&nodes(store, "a"), NOW_US);
    let mut ids = generator(window, &clock);
    let mut made = make(&mut ids, 10);
    clock.advance_us(500);
    made.extend(make(&mut ids, 10));
    let retired = ids.retire();
    let used_until_us = retired.until_us();
    lease.release(retired).expect("a release");
    assert!(used_until_us > NOW_US && used_until_us < NOW_US + SECOND_US);
    for back_us in [0, 20_000] {
        let now_us = NOW_US + 500 - back_us;
        let (lease, window) = acquire(&nodes(store, "b"), now_us);
        assert_eq!(lease.node().number(), 0);
        assert_eq!(window.from_us(), used_until_us);
        let unused = generator(window, &clock);
        lease.release(unused.retire()).expect("a release");
    }
    let (_, window) = acquire(&nodes(store, "b"), NOW_US);
    clock.set_us(used_until_us);
    let later = make(&mut generator(window, &clock), 10);
    assert_eq!((made.len(), later.len()), (20, 10));
    assert!(made.last() < later.first());
}

#[test]
fn a_crashed_holders_node_is_free_when_its_lease_ends() {
    for moved_us in [0, -SECOND_US, -20 * SECOND_US, 20 * SECOND_US] {
        on_both(|store| {
            let (lease, window) = acquire(&nodes(store, "a"), NOW_US);
            let until_us = window.until_us();
            drop((lease, window));
            pass(store, LEASE_MS - 8_000);
            let b = nodes(store, "b");
            let held = b.acquire_node(node(0), NOW_US).expect_err("it is held");
            let NodeLeaseError::Held {
                holder, ends_in_ms, ..
            } = &held
            else {
                panic!("{held}");
            };
            assert!(holder == "a" && (1..=8_000).contains(ends_in_ms), "{held}");
            assert_eq!(acquire(&b, NOW_US).0.node().number(), 1);
            pass(store, 8_000);
            let (lease, window) = acquire(&b, NOW_US + moved_us);
            assert_eq!((lease.node().number(), lease.fence()), (0, 2));
            assert_eq!(window.from_us(), until_us.max(NOW_US + moved_us));
        });
    }
}

fn a_lost_lease_stays_lost(store: &Store) {
    let clock = ManualClock::at_us(NOW_US);
    let (mut lease, window) = acquire(&nodes(store, "a"), NOW_US);
    let until_us = window.until_us();
    execute(store, "update node_lease set lease_fence = 2");
    let lost = lease.renew(lease.due_us()).expect_err("another fence");
    assert!(is_lost(&lost), "{lost}");
    for part in [
        "the lease on the node 0 of tiny was lost",
        "lease a node again",
    ] {
        assert!(lost.to_string().contains(part), "{lost}");
    }
    execute(store, "update node_lease set lease_fence = 1");
    assert_eq!(lease.renew(lease.due_us()), Err(lost.clone()));
    assert_eq!(window.until_us(), until_us);
    let retired = generator(window, &clock).retire();
    assert_eq!(lease.release(retired), Err(lost));

    // So is one whose row went to another name, was given back, or is gone.
    for sql in [
        "update node_lease set lease_holder = 'x' where node = 1",
        "update node_lease set lease_holder = null where node = 1",
        "delete from node_lease where node = 1",
    ] {
        let (mut lease, window) = acquire(&nodes(store, "a"), NOW_US);
        assert_eq!(lease.node().number(), 1);
        execute(store, sql);
        let lost = lease.renew(lease.due_us()).expect_err("a changed row");
        assert!(is_lost(&lost), "{lost}");
        drop(window);
        execute(store, "delete from node_lease where node = 1");
    }
}

fn an_ended_lease_that_is_still_free_is_renewed_and_released(store: &Store) {
    let clock = ManualClock::at_us(NOW_US);
    let (mut lease, window) = acquire(&nodes(store, "a"), NOW_US);
    pass(store, 2 * LEASE_MS);
    lease.renew(NOW_US + 60 * SECOND_US).expect("a renewal");
    assert_eq!(window.until_us(), NOW_US + 63 * SECOND_US);
    let other = nodes(store, "b").acquire_node(node(0), NOW_US);
    assert!(is_held(&other.expect_err("it is held")));
    pass(store, 2 * LEASE_MS);
    let retired = generator(window, &clock).retire();
    lease.release(retired).expect("a release");
}

fn a_renewal_that_failed_may_be_tried_again(store: &Store) {
    let (mut lease, window) = acquire(&nodes(store, "a"), NOW_US);
    let until_us = window.until_us();
    let due_us = lease.due_us();
    execute(store, "alter table node_lease rename to away");
    for _ in 0..2 {
        let failed = lease.renew(due_us).expect_err("there is no table");
        assert!(matches!(failed, NodeLeaseError::Db(_)), "{failed}");
        assert_eq!(window.until_us(), until_us, "it was not recorded");
        assert_eq!(lease.due_us(), due_us);
    }
    execute(store, "alter table away rename to node_lease");
    lease.renew(due_us).expect("a renewal");
    assert_eq!(window.until_us(), list(store)[0].until_us);
    assert!(window.until_us() > until_us);
}

/// A commit whose answer is lost may have happened: the row reaches further than the lease knows.
fn a_renewal_without_an_answer_may_be_tried_again(store: &Store) {
    let (mut lease, window) = acquire(&nodes(store, "a"), NOW_US);
    let extend_row = |lease: &NodeLease| {
        let extended = lease.record().extended(lease.due_us(), &WINDOW_CONFIG);
        let extended = extended.expect("a renewal is due");
        let text = extended.to_string();
        write(store, move |tx| {
            tx.execute("update node_lease set record = $1", &[&text])
                .expect("a statement")
        });
        extended.until_us()
    };
    extend_row(&lease);
    lease.renew(lease.due_us() + 7).expect("a renewal");
    assert_eq!(list(store)[0].until_us, window.until_us());
    let until_us = extend_row(&lease);
    assert!(window.until_us() < until_us);
    drop((lease, window));
    pass(store, 2 * LEASE_MS);
    let (_, next) = acquire(&nodes(store, "b"), NOW_US);
    assert_eq!(next.from_us(), until_us);
}

fn each_lease_is_released_with_its_own_generator(store: &Store) {
    let clock = ManualClock::at_us(NOW_US);
    let (_first, first_window) = acquire(&nodes(store, "a"), NOW_US);
    let (second, _second_window) = acquire(&nodes(store, "a"), NOW_US);
    let retired = generator(first_window, &clock).retire();
    assert_eq!(second.release(retired), Err(NodeLeaseError::OtherWindow));
    assert!(list(store).iter().all(|listed| listed.holder.is_some()));
}

fn a_node_far_ahead_of_the_clock_is_skipped(store: &Store) {
    let ahead_us = NOW_US + 3_600 * SECOND_US;
    for _ in 0..3 {
        drop(acquire(&nodes(store, "fast"), ahead_us));
    }
    let b = nodes(store, "b");
    let named = b.acquire_node(node(0), NOW_US);
    assert!(is_held(&named.expect_err("that comes first")));
    pass(store, 2 * LEASE_MS);
    let is_behind = |error: &NodeLeaseError| {
        matches!(
            error,
            NodeLeaseError::Begin {
                node: 0,
                error: BeginError::ClockBehind { .. },
                ..
            }
        )
    };
    let (_lease, window) = acquire(&b, NOW_US);
    assert_eq!(window.node().number(), 3);
    let none = b.acquire(NOW_US).expect_err("no other is free");
    assert!(is_behind(&none), "{none}");
    let named = b.acquire_node(node(0), NOW_US).expect_err("it is ahead");
    assert_eq!(none, named);
    let text = named.to_string();
    assert!(
        text.contains("node 0 of tiny") && text.contains("set the clock right"),
        "{text}"
    );
    assert_eq!(acquire(&b, ahead_us).0.node().number(), 0);
}

fn there_may_be_no_free_node(store: &Store) {
    let _held: Vec<_> = (0..4)
        .map(|_| acquire(&nodes(store, "a"), NOW_US))
        .collect();
    let error = nodes(store, "b").acquire(NOW_US).expect_err("all are held");
    assert_eq!(
        error,
        NodeLeaseError::AllHeld {
            layout: "tiny",
            count: 4
        }
    );
    let text = error.to_string();
    assert!(
        text.starts_with("all 4 nodes of tiny are held; stop "),
        "{text}"
    );
    let late = nodes(store, "b").acquire(NOW_US - 3_600 * SECOND_US);
    assert_eq!(late.expect_err("held comes first"), error);
    pass(store, LEASE_MS);
    assert_eq!(acquire(&nodes(store, "b"), NOW_US).0.node().number(), 0);
    let unfit = NodeLeases::new(store.clone(), Layout::ULID, WINDOW_CONFIG, "a");
    let error = unfit.acquire(NOW_US).expect_err("it is unfit");
    assert!(matches!(error, NodeLeaseError::Node(_)), "{error}");
}

#[test]
fn a_record_of_another_layout_is_refused() {
    const WIDER: Layout = layout("tiny", &[Field::node("node", 3), Field::sequence(19)]);
    on_both(|store| {
        let (lease, _window) = acquire(&nodes(store, "a"), NOW_US);
        let wider = NodeLeases::new(store.clone(), WIDER, WINDOW_CONFIG, "b");
        let is_foreign = |error: &NodeLeaseError| {
            matches!(
                error,
                NodeLeaseError::Begin {
                    error: BeginError::ForeignLayout { .. },
                    ..
                }
            )
        };
        // Even while the node is held, and so would not be taken.
        let error = wider.acquire(NOW_US).expect_err("two layouts of one name");
        assert!(is_foreign(&error), "{error}");
        pass(store, LEASE_MS);
        let error = wider.acquire(NOW_US).expect_err("two layouts of one name");
        assert!(is_foreign(&error), "{error}");
        let same = Node::new(&WIDER, 0).expect("a node");
        let error = wider.acquire_node(same, NOW_US).expect_err("the same");
        assert!(is_foreign(&error), "{error}");
        let error = wider.acquire_node(*lease.node(), NOW_US);
        assert_eq!(
            error.expect_err("a node of another layout"),
            NodeLeaseError::OtherLayout {
                layout: "tiny",
                given: "tiny"
            }
        );
    });
}

fn a_damaged_record_is_refused_and_never_begun_again(store: &Store) {
    drop(acquire(&nodes(store, "a"), NOW_US));
    pass(store, LEASE_MS);
    execute(
        store,
        "update node_lease set record = replace(record, 'until_us 1', 'until_us 0')",
    );
    let torn = NodeLeaseError::Record {
        layout: "tiny",
        node: 0,
        error: RecordError::Torn,
    };
    let a = nodes(store, "a");
    assert_eq!(a.acquire(NOW_US).expect_err("damage"), torn);
    assert_eq!(a.acquire_node(node(0), NOW_US).expect_err("damage"), torn);
    assert_eq!(acquire_number(&a, 1), 1);
    let listed = store.read_blocking(node_lease::list);
    assert!(matches!(listed, Err(StoreError::Unreadable { .. })));
}

fn acquire_number(nodes: &NodeLeases, number: u64) -> u64 {
    let acquired = nodes.acquire_node(node(number), NOW_US);
    acquired.expect("a node").0.node().number()
}
