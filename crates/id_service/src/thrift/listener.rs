//! The Thrift listener, and the thread that all of its connections share.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    rc::Rc,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use driftline_api::transport::accept;
use driftline_runtime::FaultLog;
use tokio::{sync::oneshot, task::LocalSet, time::timeout};

use super::{
    calls::{Calls, shared_buffer},
    limits::Limits,
    open_connections::OpenConnections,
};
use crate::Issuer;

/// A running listener. Dropping it stops it without waiting for its connections.
///
/// All connections share a dedicated thread: a request costs a few µs, most of them in the kernel, and
/// no other work of the process can delay it.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts the thread.
    ///
    /// # Errors
    /// The socket's, or the thread cannot be started.
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

    /// The address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops: accepts no more connections, and ends the open ones once the calls that were sent are
    /// answered, or after some seconds.
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

async fn serve(
    listener: tokio::net::TcpListener,
    issuer: Arc<Issuer>,
    limits: Limits,
    mut stopped: oneshot::Receiver<()>,
) {
    let connections = Rc::new(OpenConnections::default());
    let shared = shared_buffer();
    let mut accepting = FaultLog::default();
    loop {
        let accepted = accept(&listener, "Thrift", &mut accepting, || connections.evict());
        let stream = tokio::select! {
            stream = accepted => stream,
            _ = &mut stopped => break,
        };
        let slot = connections.add(limits.connections);
        let calls = Calls::new(stream, Arc::clone(&issuer), limits, slot);
        tokio::task::spawn_local(calls.run(Rc::clone(&shared)));
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

const GRACE: Duration = Duration::from_secs(4);
