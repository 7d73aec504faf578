//! `feed`: from a commit to those who follow it as server-sent events, next to a bare broadcast of the same
//! lines that stores nothing.

use std::{
    convert::Infallible,
    net::SocketAddr,
    process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use axum::{
    Router,
    response::sse::{Event, Sse},
    routing::get,
};
use driftline_api::router;
use driftline_core::answer::{AnswerHeaders, Listed, Page};
use driftline_mirror::SourceHealth;
use driftline_server::testing::{OPERATOR_TOKEN, app};
use driftline_store::{Store, Target};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::broadcast,
};

use crate::{
    Effort, cpu,
    failure::Failure,
    ingest::{Intake, add_source, page},
    pages,
    rounds::{Pairs, Times},
    table::{Table, met},
};

/// Measures one follower and many, ours and the peer in turns.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let (many, posts) = if effort.quick { (20, 20) } else { (500, 400) };
    let mut table = Table::new(
        format!(
            "feed: {POSTS_PER_S} posts/s, each committed alone on SQLite; from the end of a commit to a client"
        ),
        [
            "clients",
            "figure",
            "Driftline",
            "bare broadcast",
            "ratio",
            "target",
            "met",
        ],
    );
    for clients in [1, many] {
        let measure = |is_ours| measure(is_ours, clients, posts);
        let pairs = Pairs::measure(effort.rounds(3), || measure(true), || measure(false))?;
        let mut row = |name: &str, figure: fn(&Figures) -> f64, target: Option<f64>| {
            let [ours, peer, ratio] = pairs.cells(figure, 2);
            let median = pairs.ours(figure, 2).median;
            table.row([
                clients.to_string(),
                name.to_owned(),
                ours,
                peer,
                ratio,
                target.map_or_else(String::new, |most| format!("< {most}")),
                target.map_or_else(String::new, |most| met(median < most)),
            ]);
        };
        row("p50, ms", |f| f.times.p50, Some(20.0));
        row("p99, ms", |f| f.times.p99, None);
        let most = (clients > 1).then_some(30.0);
        row(
            "CPU, % of one core, intake included",
            |f| f.cpu_percent,
            most,
        );
    }
    table.print();
    Ok(())
}

/// The figures of one round.
#[derive(Debug, Clone, Copy)]
struct Figures {
    times: Times,
    cpu_percent: f64,
}

fn measure(is_ours: bool, clients: usize, count: usize) -> Result<Figures, Failure> {
    let folder = tempfile::tempdir()?;
    let posts = posts(count)?;
    let store = Store::open(Target::Sqlite {
        path: folder.path().join("bench.db"),
    })?;
    let mut publisher = match is_ours {
        true => {
            let source = add_source(&store)?;
            let first = &posts[0];
            let mut intake = Intake::start(&store, source, first.headers.received_at_ms)?;
            intake.commit(Page {
                listed: vec![first.listed.clone()],
                headers: first.headers.clone(),
                ..Page::default()
            })?;
            Publisher::Store(Box::new(intake))
        }
        false => Publisher::Broadcast(broadcast::Sender::new(1_024)),
    };
    let served = match &publisher {
        Publisher::Store(_) => router(app(&store, SourceHealth::default())),
        Publisher::Broadcast(lines) => bare(lines.clone()),
    };
    let address = serve(served)?;
    let followers = Followers::start(address, clients, count)?;
    let (cpu_before, clients_before) = (cpu::of_process(process::id())?, followers.cpu()?);
    let begin = Instant::now();
    let mut committed = Vec::with_capacity(count);
    for (number, pair) in posts.windows(2).enumerate() {
        let due = begin + Duration::from_secs_f64(number as f64 / POSTS_PER_S);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        publisher.publish(&pair[1], &pair[0])?;
        committed.push(Instant::now());
    }
    let seen = followers.first_seen()?;
    let seconds = begin.elapsed().as_secs_f64();
    let used = cpu::of_process(process::id())? - cpu_before;
    let by_clients = followers.cpu()? - clients_before;
    if seen.len() != committed.len() {
        return Err(Failure::new(format!(
            "{} events of {}",
            seen.len(),
            committed.len()
        )));
    }
    let times = committed.iter().zip(&seen);
    let times = times.map(|(at, seen)| seen.saturating_duration_since(*at));
    store.close_blocking();
    Ok(Figures {
        times: Times::of(times.collect()),
        cpu_percent: (used.saturating_sub(by_clients)).as_secs_f64() / seconds * 100.0,
    })
}

/// What is published, the oldest first, and one before it.
fn posts(count: usize) -> Result<Vec<Published>, Failure> {
    let mut posts: Vec<Published> = Vec::new();
    for raw in pages::forward(count as u64 + 50)? {
        let read = page(&raw)?;
        for listed in read.listed.into_iter().rev() {
            // The pages meet.
            if posts
                .last()
                .is_none_or(|last| last.listed.position != listed.position)
            {
                let headers = read.headers.clone();
                posts.push(Published { listed, headers });
            }
        }
    }
    posts.truncate(count + 1);
    Ok(posts)
}

/// A post, and the headers of an answer that shows it.
struct Published {
    listed: Listed,
    headers: AnswerHeaders,
}

enum Publisher {
    Store(Box<Intake>),
    Broadcast(broadcast::Sender<Arc<str>>),
}

impl Publisher {
    fn publish(&mut self, post: &Published, before: &Published) -> Result<(), Failure> {
        match self {
            Self::Store(intake) => intake.commit(Page {
                listed: vec![post.listed.clone(), before.listed.clone()],
                headers: post.headers.clone(),
                ..Page::default()
            }),
            Self::Broadcast(lines) => {
                let _ = lines.send(post.listed.post.raw.as_str().into());
                Ok(())
            }
        }
    }
}

/// The peer.
fn bare(lines: broadcast::Sender<Arc<str>>) -> Router {
    let follow = move || {
        let followed = lines.subscribe();
        let events = futures_util::stream::unfold(followed, |mut followed| async move {
            let line = followed.recv().await.ok()?;
            let event = Event::default().event("new").id("1:1").data(&*line);
            Some((Ok::<_, Infallible>(event), followed))
        });
        async { Sse::new(events) }
    };
    Router::new().route(PATH, get(follow))
}

/// On a thread of its own.
fn serve(router: Router) -> Result<SocketAddr, Failure> {
    let (told, address) = mpsc::channel();
    thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        else {
            return;
        };
        runtime.block_on(async {
            if let Ok(listener) = TcpListener::bind(("127.0.0.1", 0)).await
                && let Ok(address) = listener.local_addr()
            {
                let _ = told.send(address);
                let limits = driftline_api::transport::Limits::default();
                let _ = driftline_api::transport::serve(
                    listener,
                    router,
                    limits,
                    std::future::pending(),
                )
                .await;
            }
        });
    });
    Ok(address.recv()?)
}

/// Clients on a thread of their own, all of which have connected.
struct Followers {
    ask_cpu: tokio::sync::mpsc::UnboundedSender<mpsc::Sender<Duration>>,
    /// When the first of them got each event.
    seen: mpsc::Receiver<Vec<Instant>>,
}

impl Followers {
    fn start(address: SocketAddr, clients: usize, count: usize) -> Result<Self, Failure> {
        let (ask_cpu, mut asked) = tokio::sync::mpsc::unbounded_channel::<mpsc::Sender<Duration>>();
        let (tell_seen, seen) = mpsc::channel();
        let (tell_ready, ready) = mpsc::channel();
        thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            else {
                return;
            };
            let connected = Arc::new(AtomicUsize::new(0));
            runtime.block_on(async {
                for client in 0..clients {
                    let tell_seen = (client == 0).then(|| tell_seen.clone());
                    let connected = Arc::clone(&connected);
                    let tell_ready = tell_ready.clone();
                    tokio::spawn(async move {
                        let is_connected = || {
                            if connected.fetch_add(1, Ordering::Relaxed) + 1 == clients {
                                let _ = tell_ready.send(());
                            }
                        };
                        if let Ok(times) = follow(address, count, is_connected).await
                            && let Some(tell_seen) = tell_seen
                        {
                            let _ = tell_seen.send(times);
                        }
                    });
                }
                while let Some(answer) = asked.recv().await {
                    let _ = answer.send(cpu::of_this_thread().unwrap_or_default());
                }
            });
        });
        ready.recv_timeout(Duration::from_secs(60))?;
        Ok(Self { ask_cpu, seen })
    }

    fn cpu(&self) -> Result<Duration, Failure> {
        let (told, cpu) = mpsc::channel();
        let _ = self.ask_cpu.send(told);
        Ok(cpu.recv_timeout(Duration::from_secs(60))?)
    }

    fn first_seen(&self) -> Result<Vec<Instant>, Failure> {
        Ok(self.seen.recv_timeout(Duration::from_secs(60))?)
    }
}

/// Reads so many events, and returns when each came.
async fn follow(
    address: SocketAddr,
    count: usize,
    is_connected: impl Fn(),
) -> Result<Vec<Instant>, Failure> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "GET {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        OPERATOR_TOKEN
    );
    stream.write_all(request.as_bytes()).await?;
    let mut reader = BufReader::new(stream);
    let (mut line, mut times) = (Vec::new(), Vec::with_capacity(count));
    let mut has_begun = false;
    while times.len() < count {
        line.clear();
        if reader.read_until(b'\n', &mut line).await? == 0 {
            return Err(Failure::new("the stream has ended"));
        }
        if !has_begun && line == b"\r\n" {
            has_begun = true;
            is_connected();
        }
        if line.starts_with(b"event: new") {
            times.push(Instant::now());
        }
    }
    Ok(times)
}

const PATH: &str = "/api/v1/stream/posts";
const POSTS_PER_S: f64 = 20.0;
