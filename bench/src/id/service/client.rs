//! The load: one thread that drives every connection, the same for every server.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use mio::{Events, Poll};

use super::{connection::Connection, exchange::Exchange};
use crate::{cpu, failure::Failure};

/// How long, after how long a warm-up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    pub(super) warm_up: Duration,
    pub(super) measured: Duration,
}

/// What came of a load.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) requests_per_s: f64,
    pub(super) ids_per_s: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// Of one core, each.
    pub(super) client_cpu: f64,
    pub(super) server_cpu: f64,
    /// From the warm-up.
    pub(super) ids: Vec<u64>,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// So many at once on a connection, as soon as those before are answered.
    Closed(usize),
    /// So many a second in all, whether answered or not; a latency begins when its request was to be sent.
    PerS(u32),
}

/// Drives so many connections.
pub(super) fn load<E: Exchange>(
    address: SocketAddr,
    server: u32,
    exchange: &E,
    connections: usize,
    pace: Pace,
    time: Time,
) -> Result<Outcome, Failure> {
    let mut poll = Poll::new()?;
    let mut crowd = crowd(address, &poll, connections)?;
    let (depth, between) = match pace {
        Pace::Closed(depth) => (depth, None),
        Pace::PerS(per_s) => (1, Some(Duration::from_secs(1) / per_s)),
    };
    let requests = exchange.request().repeat(depth);
    // The times at which each connection's requests under way were sent, or were to be.
    let mut under_way: Vec<VecDeque<Instant>> = vec![VecDeque::new(); connections];
    if between.is_none() {
        for (connection, sent) in crowd.iter_mut().zip(&mut under_way) {
            sent.extend([Instant::now()].repeat(depth));
            connection.send(&requests)?;
        }
    }
    let mut tally = Tally::begin(server, time)?;
    let mut events = Events::with_capacity(connections);
    let mut due = Instant::now();
    let mut turns = (0..connections).cycle();
    // What is under way at the end is waited for.
    while !tally.is_over() || under_way.iter().any(|sent| !sent.is_empty()) {
        if let Some(between) = between {
            while due <= Instant::now() && !tally.is_over() {
                let number = turns.next().unwrap_or(0);
                crowd[number].send(&requests)?;
                under_way[number].push_back(due);
                due += between;
            }
        }
        poll.poll(
            &mut events,
            Some(between.map_or(TIMEOUT, |_| Duration::ZERO)),
        )?;
        if events.is_empty() && between.is_none() {
            return Err(Failure::new("the server answers no more"));
        }
        for event in &events {
            let number = event.token().0;
            let (connection, sent) = (&mut crowd[number], &mut under_way[number]);
            let mut now = None;
            connection.receive(exchange, |reply| {
                let now = *now.get_or_insert_with(Instant::now);
                let sent = sent.pop_front();
                let sent = sent.ok_or_else(|| Failure::new("a reply without a request"))?;
                tally.reply(exchange, reply, sent, now)
            })?;
            if between.is_none() && sent.is_empty() && !tally.is_over() {
                sent.extend([Instant::now()].repeat(depth));
                connection.send(&requests)?;
            }
        }
        tally.look_at(Instant::now())?;
        if between.is_some() {
            if under_way.iter().any(|sent| sent.len() > MAX_UNDER_WAY) {
                return Err(Failure::new("so many requests are too many"));
            }
            // `poll` counts ms, which is too coarse.
            let rest = due.saturating_duration_since(Instant::now());
            thread::sleep(rest.max(MIN_REST));
        }
    }
    tally.outcome(exchange)
}

fn crowd(address: SocketAddr, poll: &Poll, count: usize) -> Result<Vec<Connection>, Failure> {
    (0..count)
        .map(|number| Connection::open(address, poll.registry(), number))
        .collect()
}

/// Counts replies, once the warm-up is over.
struct Tally {
    server: u32,
    begin: Instant,
    end: Instant,
    stage: Stage,
    latencies: Histogram<u64>,
    ids: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    WarmUp,
    /// Processor time of client and server before.
    Measured([Duration; 2]),
    /// Processor time that they used.
    Over([Duration; 2]),
}

impl Tally {
    fn begin(server: u32, time: Time) -> Result<Self, Failure> {
        let begin = Instant::now() + time.warm_up;
        Ok(Self {
            server,
            begin,
            end: begin + time.measured,
            stage: Stage::WarmUp,
            latencies: Histogram::new_with_bounds(1, 60_000_000_000, 3)?,
            ids: Vec::new(),
        })
    }

    #[inline]
    fn reply<E: Exchange>(
        &mut self,
        exchange: &E,
        reply: &[u8],
        sent: Instant,
        now: Instant,
    ) -> Result<(), Failure> {
        match self.stage {
            Stage::Measured(_) => {
                let latency = now.saturating_duration_since(sent);
                self.latencies.saturating_record(latency.as_nanos() as u64);
                Ok(())
            }
            Stage::WarmUp if self.ids.len() < MAX_SAMPLED => {
                exchange.take_ids(reply, &mut self.ids)
            }
            _ => Ok(()),
        }
    }

    fn look_at(&mut self, now: Instant) -> Result<(), Failure> {
        match self.stage {
            Stage::WarmUp if now >= self.begin => {
                self.stage = Stage::Measured(self.cpu()?);
                // What was done since the beginning belongs to the warm-up.
                let late = now - self.begin;
                (self.begin, self.end) = (now, self.end + late);
            }
            Stage::Measured(before) if now >= self.end => {
                let after = self.cpu()?;
                self.end = now;
                self.stage = Stage::Over([after[0] - before[0], after[1] - before[1]]);
            }
            _ => {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    fn cpu(&self) -> Result<[Duration; 2], Failure> {
        Ok([cpu::of_this_thread()?, cpu::of_process(self.server)?])
    }

    fn outcome<E: Exchange>(self, exchange: &E) -> Result<Outcome, Failure> {
        let Stage::Over([client, server]) = self.stage else {
            return Err(Failure::new("the load ended early"));
        };
        let seconds = (self.end - self.begin).as_secs_f64();
        let requests_per_s = self.latencies.len() as f64 / seconds;
        let ms = |quantile| self.latencies.value_at_quantile(quantile) as f64 / 1e6;
        Ok(Outcome {
            requests_per_s,
            ids_per_s: requests_per_s * exchange.ids_each() as f64,
            p50_ms: ms(0.50),
            p99_ms: ms(0.99),
            client_cpu: client.as_secs_f64() / seconds,
            server_cpu: server.as_secs_f64() / seconds,
            ids: self.ids,
        })
    }
}

/// So that replies are waited for once no request is due any more.
const MIN_REST: Duration = Duration::from_micros(1);
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_SAMPLED: usize = 1_000_000;
/// On one connection: seconds of its share of any rate asked for here.
const MAX_UNDER_WAY: usize = 1_000;
