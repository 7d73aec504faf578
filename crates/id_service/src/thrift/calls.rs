//! The calls of one connection: frames in, frames out.

use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    time::Instant,
};

use driftline_runtime::metrics::{ID_CONNECTIONS_ENDED, ID_REFUSALS};
use metrics::Counter;
use tokio::{
    io::{AsyncRead, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    limits::Limits,
    message::{Call, Failure, LENGTH_BYTES, Request},
    open_connections::ConnectionSlot,
    wire::WireError,
};
use crate::{IssueError, Issuer, agent::is_agent};

/// Reads and answers the calls of a client's connection.
pub(super) struct Calls {
    stream: TcpStream,
    issuer: Arc<Issuer>,
    limits: Limits,
    slot: ConnectionSlot,
    /// Bytes read and not yet answered: at most one frame and one read.
    pending: Vec<u8>,
    /// Replies not yet sent.
    out: Vec<u8>,
    /// The last agent and its counter: a connection usually has one.
    agent: Option<(Box<[u8]>, Counter)>,
}

/// The read buffer of all connections of a thread, so that silent ones need no memory.
pub(super) type Shared = Rc<RefCell<Box<[u8]>>>;

/// A buffer for [`Shared`].
pub(super) fn shared_buffer() -> Shared {
    Rc::new(RefCell::new(vec![0; READ_BYTES].into_boxed_slice()))
}

/// Why a connection ended, unless the client closed it.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("the client broke off: {0}")]
    Broken(#[from] io::Error),
    #[error("a frame of {length} bytes was announced, more than {max}; is the transport framed?")]
    Frame { length: u32, max: usize },
    #[error("a frame's header cannot be read: {0}")]
    Header(WireError),
    #[error("half a frame was sent, and no more of it in time")]
    Slow,
    #[error("replies were not read in time")]
    Unread,
}

impl Calls {
    pub(super) fn new(
        stream: TcpStream,
        issuer: Arc<Issuer>,
        limits: Limits,
        slot: ConnectionSlot,
    ) -> Self {
        Self {
            stream,
            issuer,
            limits,
            slot,
            pending: Vec::new(),
            out: Vec::new(),
            agent: None,
        }
    }

    /// Serves the client until it disconnects, fails or is evicted.
    pub(super) async fn run(mut self, shared: Shared) {
        let open_connection = Rc::clone(&self.slot.connection);
        let served = tokio::select! {
            served = self.serve(&shared) => served,
            () = open_connection.evicted.notified() => return,
        };
        if let Err(ended) = served {
            let reason = match ended {
                Ended::Broken(_) => "broken",
                Ended::Frame { .. } => "frame",
                Ended::Header(_) => "header",
                Ended::Slow => "slow",
                Ended::Unread => "unread",
            };
            ID_CONNECTIONS_ENDED.with([reason]).increment(1);
            tracing::debug!(%ended, "a Thrift connection ended");
        }
    }

    async fn serve(&mut self, shared: &Shared) -> Result<(), Ended> {
        let open_connection = Rc::clone(&self.slot.connection);
        let mut closing = pin!(open_connection.closing.notified());
        loop {
            let is_within_frame = !self.pending.is_empty();
            let read = tokio::select! {
                biased;
                read = read(&mut self.stream, shared, &mut self.pending) => Some(read?),
                () = &mut closing => None,
                // Starts again with each read: a client that sends slowly is not silent.
                () = sleep(self.limits.silence), if is_within_frame => return Err(Ended::Slow),
            };
            match read {
                Some(0) => return Ok(()),
                Some(_) => {}
                // Calls that the client has already sent are still answered.
                None => {
                    read_now(&self.stream, &mut self.pending);
                    self.answer().await?;
                    return self.send().await;
                }
            }
            let answered = self.answer().await;
            // Also the replies to calls before an invalid frame.
            self.send().await?;
            answered?;
            self.pending.shrink_to(KEPT_BYTES);
            self.out.shrink_to(KEPT_BYTES);
        }
    }

    /// Answers the complete frames.
    async fn answer(&mut self) -> Result<(), Ended> {
        let frames = std::mem::take(&mut self.pending);
        let mut rest = frames.as_slice();
        while let Some((length, after)) = rest.split_first_chunk::<LENGTH_BYTES>() {
            let length = u32::from_be_bytes(*length);
            let max = self.limits.frame_bytes;
            let size = usize::try_from(length).ok().filter(|size| *size <= max);
            let size = size.ok_or(Ended::Frame { length, max })?;
            let Some((frame, after)) = after.split_at_checked(size) else {
                break;
            };
            rest = after;
            self.call(&Call::parse(frame).map_err(Ended::Header)?)
                .await?;
            self.slot.connection.answered.set(Some(Instant::now()));
            if self.out.len() > SENT_BYTES {
                self.send().await?;
            }
        }
        let done = frames.len() - rest.len();
        self.pending = frames;
        self.pending.drain(..done);
        Ok(())
    }

    async fn call(&mut self, call: &Call<'_>) -> Result<(), Ended> {
        let answer = match call.request {
            Request::Id { agent } => {
                let id = self.id(agent).await?;
                id.map_err(|message| (Failure::Internal, message))
            }
            Request::Timestamp => Ok(self.issuer.now_us().div_euclid(1_000)),
            Request::WorkerId => Ok(self.issuer.worker_id()),
            Request::DatacenterId => Ok(self.issuer.datacenter_id()),
            Request::Unknown => {
                let name = String::from_utf8_lossy(call.name);
                let name: String = name.chars().take(64).collect();
                let message = format!(
                    "there is no method {name:?}; there are get_id, get_timestamp, \
                     get_worker_id and get_datacenter_id"
                );
                Err((Failure::UnknownMethod, message))
            }
            Request::NotACall { kind } => {
                let message = format!("invalid message type {kind}: expected a call");
                Err((Failure::MessageType, message))
            }
            Request::Malformed(error) => {
                let message = format!("the arguments cannot be read: {error}");
                Err((Failure::Protocol, message))
            }
        };
        match answer {
            _ if call.one_way => {}
            Ok(value) => call.reply(&mut self.out, value),
            Err((failure, message)) => call.fail(&mut self.out, failure, &message),
        }
        Ok(())
    }

    /// An ID, or the message of a refusal.
    async fn id(&mut self, agent: Option<&[u8]>) -> Result<Result<i64, String>, Ended> {
        let known = match (&self.agent, agent) {
            (Some((last, _)), Some(agent)) => **last == *agent,
            _ => false,
        };
        if !known {
            let Some(agent) = agent.filter(|agent| is_agent(agent)) else {
                ID_REFUSALS.with(["user_agent"]).increment(1);
                return Ok(Err(AGENT_RULE.to_owned()));
            };
            // Longer names are looked up each time, so that they cannot fill the memory.
            let kept = agent.get(..KEPT_AGENT_BYTES).unwrap_or(agent);
            self.agent = Some((kept.into(), self.issuer.issued_to(agent)));
        }
        let made = match self.issuer.try_one() {
            Ok(raw) => Ok(raw),
            Err(_) => {
                // Earlier replies need not wait for this one.
                self.send().await?;
                self.issuer.one().await
            }
        };
        let id =
            made.and_then(|raw| i64::try_from(raw).map_err(|_| IssueError::Unsigned.counted()));
        Ok(match id {
            Ok(id) => {
                if let Some((_, issued)) = &self.agent {
                    issued.increment(1);
                }
                Ok(id)
            }
            Err(error @ IssueError::Refused(driftline_id::Refusal::ClockBehind { .. })) => {
                Err(format!("InvalidSystemClock: {error}"))
            }
            Err(error) => Err(error.to_string()),
        })
    }

    async fn send(&mut self) -> Result<(), Ended> {
        if self.out.is_empty() {
            return Ok(());
        }
        let sent = timeout(self.limits.silence, self.stream.write_all(&self.out)).await;
        sent.map_err(|_| Ended::Unread)??;
        self.out.clear();
        Ok(())
    }
}

/// Reads the available bytes, at most one buffer, and says how many; 0 at the end. Cancel-safe.
async fn read(stream: &mut TcpStream, shared: &Shared, pending: &mut Vec<u8>) -> io::Result<usize> {
    let read = poll_fn(|context| {
        let mut shared = shared.borrow_mut();
        let mut buffer = ReadBuf::new(&mut shared);
        let polled = Pin::new(&mut *stream).poll_read(context, &mut buffer);
        polled.map_ok(|()| {
            pending.extend_from_slice(buffer.filled());
            buffer.filled().len()
        })
    });
    let count = read.await?;
    if count == READ_BYTES {
        // More is likely to follow: the other connections come first.
        tokio::task::yield_now().await;
    }
    Ok(count)
}

/// Reads bytes that have already arrived. Errors show at the next write.
fn read_now(stream: &TcpStream, pending: &mut Vec<u8>) {
    let mut buffer = [0; READ_BYTES];
    if let Ok(count) = stream.try_read(&mut buffer) {
        pending.extend(buffer.iter().take(count));
    }
}

const READ_BYTES: usize = 16 * 1_024;
/// Replies are sent at the latest when there are so many bytes.
const SENT_BYTES: usize = 16 * 1_024;
const KEPT_AGENT_BYTES: usize = 64;
/// The capacity that a silent connection keeps of each buffer.
const KEPT_BYTES: usize = 512;
const AGENT_RULE: &str = "InvalidUserAgentError: a user agent is a letter and then letters, \
    digits and hyphens; send one in field 1";
