//! `feed`: from a commit to those who follow it as server-sent events, next to a bare broadcast of the same
//! lines that stores nothing.

use std::{
    convert::Infallible,
    net::SocketAddr,
    process,
    sync::{Arc, mpsc},
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
use futures_util::future::try_join_all;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    sync::broadcast,
};

use crate::{
    Effort, cpu,
    failure::Failure,
    http,
    ingest::{Intake, add_source, page},
    pages,
    process::Side,
    rounds::{Pairs, Times},
    table::{self, Table},
};

/// Measures one follower and many, ours and the peer in turns.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let (many, posts) = if effort.quick { (20, 20) } else { (500, 400) };
    let mut table = Table::new(
        format!(
            "feed: {POSTS_PER_S} posts/s, each committed alone on SQLite; from the end of a commit to a client"
        ),
        "clients | figure | Driftline | bare broadcast | ratio | target | met",
    );
    for clients in [1, many] {
        let measure = |side| measure(side, clients, posts);
        let pairs = Pairs::measure(
            effort.rounds(3),
            || measure(Side::Driftline),
            || measure(Side::Bare),
        )?;
        let mut row = |name: &str, figure: fn(&Figures) -> f64, target| {
            table.compare(format!("{clients} | {name}"), &pairs, figure, 2, target);
        };
        row("p50, ms", |f| f.times.p50, table::Target::Below(20.0));
        row("p99, ms", |f| f.times.p99, table::Target::Any);
        let target = match clients {
            1 => table::Target::Any,
            _ => table::Target::Below(30.0),
        };
        row(
            "CPU, % of one core, intake included",
            |f| f.cpu_percent,
            target,
        );
    }
    table.print();
    Ok(())
}

/// The figures of one round.
struct Figures {
    times: Times,
    cpu_percent: f64,
}

fn measure(side: Side, clients: usize, count: usize) -> Result<Figures, Failure> {
    let folder = tempfile::tempdir()?;
    let posts = posts(count)?;
    let store = Store::open(Target::Sqlite {
        path: folder.path().join("bench.db"),
    })?;
    let (mut publish, routes): (Publish, Router) = match side {
        Side::Driftline => {
            let source = add_source(&store)?;
            let mut intake = Intake::start(&store, source, posts[0].headers.received_at_ms)?;
            intake.commit(posts[0].page(None))?;
            let routes = router(app(&store, SourceHealth::default()));
            let publish =
                move |post: &Published, before: &Published| intake.commit(post.page(Some(before)));
            (Box::new(publish), routes)
        }
        Side::Bare => {
            let lines = broadcast::Sender::new(1_024);
            let routes = bare(lines.clone());
            let publish = move |post: &Published, _: &Published| {
                let _ = lines.send(Arc::from(post.listed.post.raw.as_str()));
                Ok(())
            };
            (Box::new(publish), routes)
        }
    };
    let runtime = http::one_thread()?;
    let address = http::serve(&runtime, routes)?;
    let (connected, are_connected) = mpsc::channel();
    let followers = thread::spawn(move || follow(address, clients, count, &connected));
    are_connected.recv_timeout(Duration::from_secs(60))?;
    let cpu_before = cpu::of_process(process::id())?;
    let begin = Instant::now();
    let mut committed = Vec::with_capacity(count);
    for (number, pair) in posts.windows(2).enumerate() {
        let due = begin + Duration::from_secs_f64(number as f64 / POSTS_PER_S);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        publish(&pair[1], &pair[0])?;
        committed.push(Instant::now());
    }
    let joined = followers.join();
    let (seen, by_clients) = joined.map_err(|_| Failure::new("a client panicked"))??;
    let seconds = begin.elapsed().as_secs_f64();
    let used = cpu::of_process(process::id())? - cpu_before;
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

impl Published {
    /// A page with the post, and the one before it.
    fn page(&self, before: Option<&Self>) -> Page {
        let listed = std::iter::once(self).chain(before);
        Page {
            listed: listed.map(|post| post.listed.clone()).collect(),
            headers: self.headers.clone(),
            ..Page::default()
        }
    }
}

/// Publishes a post after the one before it.
type Publish = Box<dyn FnMut(&Published, &Published) -> Result<(), Failure>>;

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

/// Reads so many events as several clients on this thread, once all are connected; when the first client got
/// each, and the processor time of all.
fn follow(
    address: SocketAddr,
    clients: usize,
    count: usize,
    connected: &mpsc::Sender<()>,
) -> Result<(Vec<Instant>, Duration), Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build()?;
    runtime.block_on(async {
        let mut streams = try_join_all((0..clients).map(|_| connect(address))).await?;
        let cpu_before = cpu::of_this_thread()?;
        let _ = connected.send(());
        let seen = streams.iter_mut().map(|stream| read(stream, count));
        let seen = tokio::time::timeout(LIMIT, try_join_all(seen)).await??;
        let cpu = cpu::of_this_thread()? - cpu_before;
        Ok((seen.into_iter().next().unwrap_or_default(), cpu))
    })
}

/// A stream of events after its header.
async fn connect(address: SocketAddr) -> Result<BufReader<TcpStream>, Failure> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "GET {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {OPERATOR_TOKEN}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Err(Failure::new("the stream has ended"));
        }
    }
    Ok(stream)
}

/// Reads so many events, and returns when each came.
async fn read(stream: &mut BufReader<TcpStream>, count: usize) -> Result<Vec<Instant>, Failure> {
    let (mut line, mut times) = (Vec::new(), Vec::with_capacity(count));
    while times.len() < count {
        line.clear();
        if stream.read_until(b'\n', &mut line).await? == 0 {
            return Err(Failure::new("the stream has ended"));
        }
        if line.starts_with(b"event: new") {
            times.push(Instant::now());
        }
    }
    Ok(times)
}

const PATH: &str = "/api/v1/stream/posts";
/// Until the last event has come.
const LIMIT: Duration = Duration::from_secs(120);
const POSTS_PER_S: f64 = 20.0;
