//! Readers of pages.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use crate::{failure::Failure, http::Connection, rounds::Times, threads};

/// The page that a reader asks for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Its target, up to the ID of a random post.
    pub(super) target: String,
    /// The token that it sends.
    pub(super) token: Option<String>,
    /// What a full page has at least.
    pub(super) min_bytes: usize,
}

/// How much is asked at once and in all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) connections: usize,
    pub(super) requests: usize,
}

/// The quantiles of requests, after a tenth as many that warm the server up.
pub(super) fn times(
    address: SocketAddr,
    asked: &Asked,
    ids: &[i64],
    load: Load,
    round: u64,
) -> Result<Times, Failure> {
    let warm = Load {
        requests: (load.requests / 10).max(load.connections),
        ..load
    };
    read(address, asked, ids, warm, round + 1_000)?;
    Ok(Times::of(read(address, asked, ids, load, round)?))
}

/// Sends requests over several connections and answers how long each took.
pub(super) fn read(
    address: SocketAddr,
    asked: &Asked,
    ids: &[i64],
    load: Load,
    seed: u64,
) -> Result<Vec<Duration>, Failure> {
    let each = load.requests / load.connections;
    let times = threads::each(0..load.connections as u64, |reader| {
        one(address, asked, ids, each, seed * 100 + reader)
    })?;
    Ok(times.concat())
}

fn one(
    address: SocketAddr,
    asked: &Asked,
    ids: &[i64],
    requests: usize,
    seed: u64,
) -> Result<Vec<Duration>, Failure> {
    let mut connection = Connection::open(address)?;
    let mut random = seed;
    let mut times = Vec::with_capacity(requests);
    // Above every position there is a full page.
    let positions = ids.len().saturating_sub(50).max(1);
    for _ in 0..requests {
        random = mixed(random);
        let id = ids[(random % positions as u64) as usize];
        let request = format!("GET {}{id}", asked.target);
        let start = Instant::now();
        let body = connection.ask(&request, asked.token.as_deref(), "")?;
        times.push(start.elapsed());
        if body.len() < asked.min_bytes {
            let text = String::from_utf8_lossy(body);
            return Err(Failure::new(format!(
                "{request} answers no full page: {text}"
            )));
        }
    }
    Ok(times)
}

/// SplitMix64.
fn mixed(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
