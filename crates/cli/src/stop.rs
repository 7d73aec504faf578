//! Signals that end the process.

use std::{io, time::Duration};

use tokio::sync::watch;

use crate::error::CliError;

/// Becomes true at the first Ctrl-C or SIGTERM; the second ends the process
/// at once.
///
/// # Errors
/// If the system takes no handler.
pub fn on_signal() -> io::Result<watch::Receiver<bool>> {
    let (sender, receiver) = watch::channel(false);
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.next().await;
        sender.send_replace(true);
        signals.next().await;
        std::process::exit(INTERRUPTED);
    });
    Ok(receiver)
}

/// Runs what ends by itself once `end_comes` is over; where it has not after a while, since the
/// store does not answer, it is dropped.
///
/// # Errors
/// Its own, or [`CliError::Failed`] if it was dropped.
pub async fn soon_after<T>(
    end_comes: impl Future<Output = ()>,
    run: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let too_long = async {
        end_comes.await;
        tokio::time::sleep(MAX_END).await;
    };
    tokio::select! {
        outcome = run => outcome,
        () = too_long => Err(CliError::failed(format!(
            "the end took more than {} s, since the store does not answer: leases were not given back, and end by themselves",
            MAX_END.as_secs()
        ))),
    }
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

/// Longer than any part of an end waits that has a bound of its own.
const MAX_END: Duration = Duration::from_secs(10);
const INTERRUPTED: i32 = 130;
