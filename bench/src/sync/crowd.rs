//! Many clients of one library, which pull as soon as they are told of changes and store nothing.

use std::{
    net::SocketAddr,
    process,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use driftline_core::sync::{ACCOUNT_LIBRARY, LibraryRequest, SyncAnswer, SyncRequest};
use futures_util::future::try_join_all;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use super::{
    library::{set_notes, short_text},
    server::Server,
};
use crate::{cpu, failure::Failure, rounds::Times};

/// The size of a crowd, and the number of changes that it follows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crowd {
    pub(super) clients: usize,
    pub(super) changes: usize,
}

/// The figures of one round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Followed {
    /// From a commit to the arrival of its change, for each change and client.
    pub(super) delays: Times,
    pub(super) max_delay_ms: f64,
    /// From a pull to its complete answer.
    pub(super) pulls: Times,
    pub(super) pulls_per_s: f64,
    /// The processor time of everything but the clients.
    pub(super) server_cpu_percent: f64,
    pub(super) clients_cpu_percent: f64,
}

/// Changes a note ten times a second, each time another, while the clients follow. `round` makes the texts new.
pub(super) fn measure(server: &Server, crowd: Crowd, round: usize) -> Result<Followed, Failure> {
    let cursor = server.cursor()?;
    let first_usn = u64::try_from(cursor.usn)?;
    let clients = Clients {
        address: server.address,
        token: server.token()?,
        cursor: cursor.to_string(),
        count: crowd.clients,
        first_usn,
        last_usn: first_usn + crowd.changes as u64,
    };
    let (ready, are_ready) = mpsc::channel();
    let following = thread::spawn(move || clients.follow(&ready));
    are_ready.recv_timeout(LIMIT)?;
    let cpu_before = cpu::of_process(process::id())?;
    let begin = Instant::now();
    let mut committed = Vec::with_capacity(crowd.changes);
    for number in 0..crowd.changes {
        let due = begin + Duration::from_secs_f64(number as f64 / CHANGES_PER_S);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let text = format!("{} {round}", short_text(number));
        set_notes(&server.store, server.account, vec![(number, text)])?;
        committed.push(Instant::now());
    }
    let joined = following.join();
    let (seen, clients_cpu) = joined.map_err(|_| Failure::new("a client panicked"))??;
    let seconds = begin.elapsed().as_secs_f64();
    let used = cpu::of_process(process::id())? - cpu_before;
    let percent = |cpu: Duration| cpu.as_secs_f64() / seconds * 100.0;
    let delays = seen.iter().flat_map(|client| {
        let times = (first_usn + 1..).zip(&committed);
        times.map(move |(usn, at)| client.delay(usn, *at))
    });
    let delays: Vec<Duration> = delays.collect();
    let pulls: Vec<Duration> = seen
        .iter()
        .flat_map(|of| of.pulls.iter().copied())
        .collect();
    Ok(Followed {
        max_delay_ms: delays
            .iter()
            .max()
            .map_or(f64::NAN, |most| most.as_secs_f64() * 1e3),
        delays: Times::of(delays),
        pulls_per_s: pulls.len() as f64 / seconds,
        pulls: Times::of(pulls),
        server_cpu_percent: percent(used.saturating_sub(clients_cpu)),
        clients_cpu_percent: percent(clients_cpu),
    })
}

/// Clients that have everything up to the first USN, and follow until the last.
struct Clients {
    address: SocketAddr,
    token: String,
    cursor: String,
    count: usize,
    first_usn: u64,
    last_usn: u64,
}

impl Clients {
    /// Follows on this thread. Returns the observations of each client, and the processor time of all.
    fn follow(&self, ready: &mpsc::Sender<()>) -> Result<(Vec<Seen>, Duration), Failure> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build()?;
        runtime.block_on(async {
            let connected = (0..self.count).map(|_| FollowingClient::connect(self));
            let mut connected = try_join_all(connected).await?;
            let cpu_before = cpu::of_this_thread()?;
            let _ = ready.send(());
            let followed = connected.iter_mut().map(|client| client.follow(self));
            tokio::time::timeout(LIMIT, try_join_all(followed)).await??;
            let cpu = cpu::of_this_thread()? - cpu_before;
            let seen = connected.into_iter().map(|client| client.seen);
            Ok((seen.collect(), cpu))
        })
    }
}

/// The observations of a client.
#[derive(Default)]
struct Seen {
    /// Each pull's highest USN so far, with its time.
    usns: Vec<(u64, Instant)>,
    pulls: Vec<Duration>,
}

impl Seen {
    /// From a commit to the first pull that had its USN.
    fn delay(&self, usn: u64, committed: Instant) -> Duration {
        let at = self.usns.partition_point(|(highest, _)| *highest < usn);
        let seen = self.usns.get(at);
        seen.map_or(LIMIT, |(_, at)| at.saturating_duration_since(committed))
    }
}

/// A client with a stream of events and a connection for pulls.
struct FollowingClient {
    events: BufReader<TcpStream>,
    pulls: BufReader<TcpStream>,
    cursor: String,
    seen: Seen,
}

impl FollowingClient {
    /// Connects, and waits for the first event, which comes at once.
    async fn connect(of: &Clients) -> Result<Self, Failure> {
        let mut events = BufReader::new(TcpStream::connect(of.address).await?);
        let pulls = TcpStream::connect(of.address).await?;
        pulls.set_nodelay(true)?;
        let request = format!("GET {EVENTS} HTTP/1.1\r\n{}\r\n", headers(&of.token));
        events.get_mut().write_all(request.as_bytes()).await?;
        let mut client = Self {
            events,
            pulls: BufReader::with_capacity(64 * 1024, pulls),
            cursor: of.cursor.clone(),
            seen: Seen::default(),
        };
        client.event().await?;
        Ok(client)
    }

    /// Pulls at each event until it has the last USN.
    async fn follow(&mut self, of: &Clients) -> Result<(), Failure> {
        let mut highest = of.first_usn;
        while highest < of.last_usn {
            self.event().await?;
            let begun = Instant::now();
            let answer = self.pull(of).await?;
            let at = Instant::now();
            self.seen.pulls.push(at - begun);
            for news in answer.news {
                let usns = news.objects.iter().map(|object| object.usn.get());
                highest = usns.fold(highest, u64::max);
                self.cursor = news.cursor.unwrap_or_default();
            }
            self.seen.usns.push((highest, at));
        }
        Ok(())
    }

    /// Waits for an event.
    async fn event(&mut self) -> Result<(), Failure> {
        let mut line = Vec::new();
        while !line.starts_with(b"event: news") {
            line.clear();
            if self.events.read_until(b'\n', &mut line).await? == 0 {
                return Err(Failure::new("a stream of events has ended"));
            }
        }
        Ok(())
    }

    async fn pull(&mut self, of: &Clients) -> Result<SyncAnswer, Failure> {
        let body = serde_json::to_string(&SyncRequest {
            libraries: vec![LibraryRequest {
                filter: None,
                library: ACCOUNT_LIBRARY.to_owned(),
                cursor: Some(self.cursor.clone()),
            }],
            max_entries: None,
            max_bytes: None,
        })?;
        let request = format!(
            "POST {PULL} HTTP/1.1\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            headers(&of.token),
            body.len()
        );
        self.pulls.get_mut().write_all(request.as_bytes()).await?;
        let mut length = None;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if self.pulls.read_line(&mut line).await? == 0 {
                return Err(Failure::new("the server has closed a connection"));
            }
            if line.starts_with("HTTP/1.1") && !line.contains(" 200 ") {
                return Err(Failure::new(format!("a pull: {}", line.trim_end())));
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse()?);
            }
        }
        let length = length.ok_or_else(|| Failure::new("an answer without a length"))?;
        let mut answer = vec![0; length];
        self.pulls.read_exact(&mut answer).await?;
        Ok(serde_json::from_slice(&answer)?)
    }
}

fn headers(token: &str) -> String {
    format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n")
}

const PULL: &str = "/api/driftline/v1/sync";
const EVENTS: &str = "/api/driftline/v1/sync/events";
const CHANGES_PER_S: f64 = 10.0;
/// Until all are connected, and until the last change has come.
const LIMIT: Duration = Duration::from_secs(300);
