use std::{io, time::Duration};

use driftline_runtime::{FaultLog, Weight, now_ms, show_ms};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};

/// Accepts the next connection, however often that fails before. `protocol` names it in the log.
///
/// What fails at our end is most likely the room for another open file: `make_room` may free some.
pub async fn accept(
    listener: &TcpListener,
    protocol: &str,
    log: &mut FaultLog,
    make_room: impl Fn(),
) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if let Some(failed_ms) = log.succeeded(now_ms()) {
                    let lasted = show_ms(failed_ms);
                    tracing::warn!("{protocol} connections are accepted again, after {lasted}");
                }
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY could not be set");
                }
                return stream;
            }
            Err(error) if is_of_one_client(&error) => {
                tracing::debug!(%error, "a connection was not accepted");
            }
            Err(error) => {
                if log.failed(Weight::Lasting, now_ms()) {
                    tracing::warn!(%error, "{protocol} connections are not accepted; trying again");
                }
                make_room();
                sleep(PAUSE).await;
            }
        }
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
