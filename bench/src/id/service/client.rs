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

/// Asks on every connection as soon as it is answered, so many requests at once.
pub(super) fn closed<E: Exchange>(
    address: SocketAddr,
    server: u32,
    exchange: &E,
    connections: usize,
    depth: usize,
    time: Time,
) -> Result<Outcome, Failure> {
    let mut poll = Poll::new()?;
    let mut crowd = crowd(address, &poll, connections)?;
    let requests = exchange.request().repeat(depth);
    let mut sent: Vec<(Instant, usize)> = vec![(Instant::now(), depth); connections];
    for (connection, sent) in crowd.iter_mut().zip(&mut sent) {
        sent.0 = Instant::now();
        connection.send(&requests)?;
    }
    let mut tally = Tally::begin(server, time)?;
    let mut events = Events::with_capacity(connections);
    // What is under way at the end is waited for.
    while !tally.is_over() || sent.iter().any(|(_, left)| *left > 0) {
        poll.poll(&mut events, Some(TIMEOUT))?;
        if events.is_empty() {
            return Err(Failure::new("the server answers no more"));
        }
        for event in &events {
            let number = event.token().0;
            let (connection, sent) = (&mut crowd[number], &mut sent[number]);
            let mut now = None;
            connection.receive(exchange, |reply| {
                let now = *now.get_or_insert_with(Instant::now);
                sent.1 = sent.1.saturating_sub(1);
                tally.reply(exchange, reply, sent.0, now)
            })?;
            if sent.1 == 0 && !tally.is_over() {
                *sent = (Instant::now(), depth);
                connection.send(&requests)?;
            }
        }
        tally.look_at(Instant::now())?;
    }
    tally.outcome(exchange)
}

/// Asks so many times a second, whether answered or not; a latency begins when its request was
/// to be sent.
pub(super) fn paced<E: Exchange>(
    address: SocketAddr,
    server: u32,
    exchange: &E,
    connections: usize,
    per_s: u32,
    time: Time,
) -> Result<Outcome, Failure> {
    let mut poll = Poll::new()?;
    let mut crowd = crowd(address, &poll, connections)?;
    let request = exchange.request();
    let mut under_way: Vec<VecDeque<Instant>> = vec![VecDeque::new(); connections];
    let mut tally = Tally::begin(server, time)?;
    let mut events = Events::with_capacity(connections);
    let mut due = Instant::now();
    let mut turns = (0..connections).cycle();
    while !tally.is_over() || under_way.iter().any(|sent| !sent.is_empty()) {
        let mut now = Instant::now();
        while due <= now && !tally.is_over() {
            let number = turns.next().unwrap_or(0);
            crowd[number].send(&request)?;
            under_way[number].push_back(due);
            due += Duration::from_secs(1) / per_s;
        }
        poll.poll(&mut events, Some(Duration::ZERO))?;
        for event in &events {
            let number = event.token().0;
            let sent = &mut under_way[number];
            now = Instant::now();
            crowd[number].receive(exchange, |reply| {
                let due = sent.pop_front();
                let due = due.ok_or_else(|| Failure::new("a reply without a request"))?;
                tally.reply(exchange, reply, due, now)
            })?;
        }
        tally.look_at(now)?;
        if under_way.iter().any(|sent| sent.len() > MAX_UNDER_WAY) {
            return Err(Failure::new(format!("{per_s} requests/s are too many")));
        }
        // `poll` counts ms, which is too coarse.
        let rest = due.saturating_duration_since(Instant::now());
        thread::sleep(rest.max(MIN_REST));
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
