//! Signals that end the process.

use std::time::Duration;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::error::{CliError, INTERRUPTED};

/// Becomes true at the first Ctrl-C or SIGTERM; the second ends the process
/// at once.
///
/// # Errors
/// [`CliError::Failed`] if the system takes no handler.
pub fn on_signal() -> Result<watch::Receiver<bool>, CliError> {
    handled(|| std::process::exit(i32::from(INTERRUPTED)))
}

/// Becomes true at the first Ctrl-C or SIGTERM; others change nothing, for a command that ends at once.
///
/// # Errors
/// [`CliError::Failed`] if the system takes no handler.
pub fn on_first_signal() -> Result<watch::Receiver<bool>, CliError> {
    handled(|| {})
}

fn handled(at_second: fn()) -> Result<watch::Receiver<bool>, CliError> {
    let handle = |kind| {
        signal(kind)
            .map_err(|error| CliError::failed(format!("signals cannot be handled: {error}")))
    };
    let mut interrupt = handle(SignalKind::interrupt())?;
    let mut terminate = handle(SignalKind::terminate())?;
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if sender.send_replace(true) {
                at_second();
            }
        }
    });
    Ok(receiver)
}

/// Waits for the signal.
pub async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|&stop| stop).await;
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

/// Longer than any part of an end waits that has a bound of its own.
const MAX_END: Duration = Duration::from_secs(10);
