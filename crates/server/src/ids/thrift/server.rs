//! The listening socket, and the thread that all connections share.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    rc::Rc,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    sync::oneshot,
    task::LocalSet,
    time::{sleep, timeout},
};

use super::{
    connection::{Connection, shared_buffer},
    connections::Connections,
};
use crate::{
    clock::now_ms,
    fault_log::{FaultLog, Weight},
    ids::Issuer,
    span::show_ms,
};

/// A running server. Dropped, it stops without waiting for its connections.
///
/// All connections share one thread of its own: a request costs a few µs, most of them in the
/// kernel, and nothing else that the process does can hold it up.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest frame in bytes, without its length.
    pub frame_bytes: usize,
    /// How long a client may be silent within a frame, or leave replies unread. Between frames it
    /// may be silent for ever.
    pub silence: Duration,
    /// How many connections there may be; past it, one that asks nothing ends for each new one.
    pub connections: usize,
}

impl Server {
    /// Starts the thread.
    ///
    /// # Errors
    /// The listener's, or the system has no thread for it.
    pub fn start(listener: TcpListener, issuer: Arc<Issuer>, limits: Limits) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("id-thrift".into())
            .spawn(move || {
                let serving = serve(listener, issuer, limits, stopped);
                LocalSet::new().block_on(&runtime, serving);
            })?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops: no more connections, and those there are end once what they have sent is answered,
    /// or after some seconds.
    pub async fn stop(mut self) {
        self.stop = None;
        let Some(thread) = self.thread.take() else {
            return;
        };
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("the thread of the Thrift server panicked");
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: 16 * 1_024,
            silence: Duration::from_secs(10),
            connections: 10_000,
        }
    }
}

async fn serve(
    listener: tokio::net::TcpListener,
    issuer: Arc<Issuer>,
    limits: Limits,
    mut stopped: oneshot::Receiver<()>,
) {
    let connections = Rc::new(Connections::default());
    let shared = shared_buffer();
    let mut accepting = FaultLog::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => break,
        };
        match accepted {
            Ok((stream, _)) => {
                if let Some(failed_ms) = accepting.succeeded(now_ms()) {
                    tracing::warn!(
                        "Thrift connections are accepted again, after {}",
                        show_ms(failed_ms)
                    );
                }
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection keeps its delay");
                }
                let ticket = connections.enter(limits.connections);
                let connection = Connection::new(stream, Arc::clone(&issuer), limits, ticket);
                tokio::task::spawn_local(connection.run(Rc::clone(&shared)));
            }
            // The client's doing.
            Err(error) if is_of_one_client(&error) => {
                tracing::debug!(%error, "a connection was not accepted");
            }
            Err(error) => {
                // Out of descriptors, most likely: one connection makes room.
                if accepting.failed(Weight::Lasting, now_ms()) {
                    tracing::warn!(%error, "Thrift connections are not accepted; trying again");
                }
                connections.evict();
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.end_all();
    let all_ended = async {
        while connections.len() > 0 {
            connections.ended.notified().await;
        }
    };
    if timeout(GRACE, all_ended).await.is_err() {
        tracing::warn!("Thrift clients were still being answered when the server stopped");
    }
}

fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

const PAUSE: Duration = Duration::from_millis(200);
const GRACE: Duration = Duration::from_secs(4);
