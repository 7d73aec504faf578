//! Signals that end the process.

use std::io;

use tokio::sync::watch;

/// Becomes true at the first Ctrl-C or SIGTERM; the second ends the process
/// at once.
///
/// # Errors
/// If the system takes no handler.
pub fn on_signal() -> io::Result<watch::Receiver<bool>> {
    let (tell, told) = watch::channel(false);
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.next().await;
        tell.send_replace(true);
        signals.next().await;
        std::process::exit(INTERRUPTED);
    });
    Ok(told)
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

const INTERRUPTED: i32 = 130;
