//! Several processes that share a ledger, and a server that counts.

use driftline_core::{
    answer::Throttle,
    quota::{Grant, QuotaLedger, QuotaPurpose, WINDOW_EDGE_MS},
};
use proptest::prelude::*;

/// A server with one limit in windows that follow each other.
struct Server {
    limit: u32,
    length_ms: i64,
    window: i64,
    used: u32,
    most: u32,
    refused: u32,
    unused_at_ends: Vec<u32>,
}

impl Server {
    fn new(limit: u32, length_ms: i64) -> Self {
        Self {
            limit,
            length_ms,
            window: 0,
            used: 0,
            most: 0,
            refused: 0,
            unused_at_ends: Vec::new(),
        }
    }

    fn ask(&mut self, now_ms: i64) -> Result<Throttle, Throttle> {
        let window = now_ms / self.length_ms;
        if window != self.window {
            self.unused_at_ends
                .push(self.limit.saturating_sub(self.used));
            self.window = window;
            self.used = 0;
        }
        self.used += 1;
        self.most = self.most.max(self.used);
        let reported = Throttle {
            limit: self.limit,
            remaining: self.limit.saturating_sub(self.used),
            reset_at_ms: (window + 1) * self.length_ms,
            error_ms: 0,
        };
        if self.used > self.limit {
            self.refused += 1;
            return Err(reported);
        }
        Ok(reported)
    }
}

/// A request that is on its way: when the server sees it and when its answer is back, Unix ms.
struct OnItsWay {
    seen_ms: i64,
    back_ms: i64,
    answer: Option<Result<Throttle, Throttle>>,
}

/// Processes with endless work share one ledger; each has one request at a time on its way and
/// holds what it was granted in blocks.
fn run(
    server: &mut Server,
    processes: usize,
    polls: usize,
    block: u32,
    round_trips_ms: &[i64],
    ends_ms: i64,
) {
    let mut ledger = QuotaLedger::default();
    let mut held = vec![(0u32, i64::MIN); processes];
    let mut on_their_way: Vec<Option<OnItsWay>> = (0..processes).map(|_| None).collect();
    let mut round_trips = round_trips_ms.iter().cycle();
    let step_ms = 50;
    for now_ms in (0..ends_ms).step_by(step_ms) {
        for process in 0..processes {
            if let Some(way) = &mut on_their_way[process] {
                if way.answer.is_none() && now_ms >= way.seen_ms {
                    way.answer = Some(server.ask(way.seen_ms));
                }
                if now_ms >= way.back_ms {
                    match way.answer {
                        Some(Ok(reported)) => {
                            ledger.answered(QuotaPurpose::Refresh, Some(&reported), now_ms);
                        }
                        Some(Err(reported)) => {
                            ledger.refused(QuotaPurpose::Refresh, Some(&reported), None, 0, now_ms);
                        }
                        None => {}
                    }
                    on_their_way[process] = None;
                }
                continue;
            }
            let purpose = if process < polls {
                QuotaPurpose::Poll
            } else {
                QuotaPurpose::Refresh
            };
            let (left, until_ms) = held[process];
            if left == 0 || now_ms >= until_ms.saturating_sub(WINDOW_EDGE_MS) {
                held[process] = match ledger.take(block, 1, purpose, 0.5, now_ms) {
                    Grant::Requests(granted) => {
                        let ends = ledger.windows().iter().map(|w| w.reset_at_ms).min();
                        (granted, ends.unwrap_or(i64::MAX))
                    }
                    Grant::Until(until_ms) => {
                        assert!(until_ms > now_ms);
                        continue;
                    }
                };
            }
            held[process].0 -= 1;
            let round_trip_ms = *round_trips.next().expect("endless");
            on_their_way[process] = Some(OnItsWay {
                seen_ms: now_ms + round_trip_ms / 2,
                back_ms: now_ms + round_trip_ms,
                answer: None,
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Processes that share a ledger overrun no limit together, not even where one window gives way
    /// to the next.
    #[test]
    fn processes_never_overrun_a_limit_together(
        limit in 20u32..400,
        processes in 1usize..6,
        block in 1u32..8,
        round_trips_ms in prop::collection::vec(100i64..1_500, 1..20),
    ) {
        let mut server = Server::new(limit, 300_000);
        run(&mut server, processes, processes / 2, block, &round_trips_ms, 1_500_000);
        prop_assert_eq!(server.refused, 0, "most {} of {}", server.most, limit);
    }

    /// While there is work, little of a window is left unused.
    #[test]
    fn a_window_is_used_up_while_there_is_work(
        limit in 50u32..300,
        round_trips_ms in prop::collection::vec(100i64..800, 1..20),
    ) {
        let mut server = Server::new(limit, 300_000);
        run(&mut server, 3, 0, 4, &round_trips_ms, 1_500_000);
        for unused in &server.unused_at_ends[1..] {
            prop_assert!(*unused <= 3 * 4, "{unused} of {limit} unused: {:?}", server.unused_at_ends);
        }
    }
}
