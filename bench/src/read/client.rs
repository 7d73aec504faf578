//! Readers that cost little compared with the server that they measure.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use driftline_server::testing::OPERATOR_TOKEN;

use crate::{failure::Failure, rounds::Times};

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// The newest of a list's posts above a random one.
    ListSince,
    /// The posts of a list just above a random one.
    ListMin,
    /// The newest public posts above a random one.
    PublicSince,
    /// The public posts just above a random one.
    PublicMin,
}

impl Endpoint {
    /// Every kind.
    pub(super) const ALL: [Self; 4] = [
        Self::ListSince,
        Self::ListMin,
        Self::PublicSince,
        Self::PublicMin,
    ];

    /// Its name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ListSince => "list, since_id",
            Self::ListMin => "list, min_id",
            Self::PublicSince => "public, since_id",
            Self::PublicMin => "public, min_id",
        }
    }

    fn target(self, id: i64) -> String {
        let (path, bound) = match self {
            Self::ListSince => ("list/1", "since_id"),
            Self::ListMin => ("list/1", "min_id"),
            Self::PublicSince => ("public", "since_id"),
            Self::PublicMin => ("public", "min_id"),
        };
        format!("/api/v1/timelines/{path}?{bound}={id}&limit=40")
    }
}

/// What a reader asks for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// The target of a request near the post of an ID.
    pub(super) target: fn(Endpoint, i64) -> String,
    pub(super) endpoint: Endpoint,
    /// The token that it sends.
    pub(super) token: Option<Arc<str>>,
    /// What a full page has at least.
    pub(super) min_bytes: usize,
}

impl From<Endpoint> for Asked {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            target: Endpoint::target,
            endpoint,
            token: match endpoint {
                Endpoint::ListSince | Endpoint::ListMin => Some(OPERATOR_TOKEN.into()),
                Endpoint::PublicSince | Endpoint::PublicMin => None,
            },
            min_bytes: MIN_BODY_BYTES,
        }
    }
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
    ids: &Arc<Vec<i64>>,
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
    ids: &Arc<Vec<i64>>,
    load: Load,
    seed: u64,
) -> Result<Vec<Duration>, Failure> {
    let each = load.requests / load.connections;
    let readers: Vec<_> = (0..load.connections)
        .map(|reader| {
            let (ids, asked) = (Arc::clone(ids), asked.clone());
            let seed = seed * 100 + reader as u64;
            thread::spawn(move || one(address, &asked, &ids, each, seed))
        })
        .collect();
    let mut times = Vec::with_capacity(load.requests);
    for reader in readers {
        let read = reader
            .join()
            .map_err(|_| Failure::new("a reader panicked"))?;
        times.extend(read?);
    }
    Ok(times)
}

fn one(
    address: SocketAddr,
    asked: &Asked,
    ids: &[i64],
    requests: usize,
    seed: u64,
) -> Result<Vec<Duration>, Failure> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut answers = BufReader::with_capacity(256 * 1024, stream.try_clone()?);
    let mut stream = stream;
    let mut random = seed;
    let mut body = Vec::new();
    let mut times = Vec::with_capacity(requests);
    // Above every position there is a full page.
    let positions = ids.len().saturating_sub(50).max(1);
    for _ in 0..requests {
        random = mixed(random);
        let id = ids[(random % positions as u64) as usize];
        let target = (asked.target)(asked.endpoint, id);
        let authorization = match &asked.token {
            Some(token) => format!("Authorization: Bearer {token}\r\n"),
            None => String::new(),
        };
        let request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n{authorization}\r\n");
        let start = Instant::now();
        stream.write_all(request.as_bytes())?;
        answer(&mut answers, &mut body)?;
        times.push(start.elapsed());
        if body.len() < asked.min_bytes {
            let text = String::from_utf8_lossy(&body);
            return Err(Failure::new(format!(
                "{target} answers no full page: {text}"
            )));
        }
    }
    Ok(times)
}

/// Reads one answer's body.
fn answer(stream: &mut impl BufRead, body: &mut Vec<u8>) -> Result<(), Failure> {
    let mut line = String::new();
    let mut length = None;
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse()?);
        }
        match line.trim_end() {
            "" => break,
            status if status.starts_with("HTTP/1.1") && !status.contains(" 200 ") => {
                return Err(Failure::new(format!("the server answers {status}")));
            }
            _ => {}
        }
    }
    body.resize(
        length.ok_or_else(|| Failure::new("an answer without a length"))?,
        0,
    );
    stream.read_exact(body)?;
    Ok(())
}

/// SplitMix64.
fn mixed(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 40 posts of 2 to 3 kB.
const MIN_BODY_BYTES: usize = 40 * 1_500;
