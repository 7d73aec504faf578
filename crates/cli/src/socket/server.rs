//! The end of the process that holds the data folder.

use std::{
    io,
    path::{Path, PathBuf},
};

use driftline_runtime::{CommandError, FaultLog, Weight, now_ms, show_ms};
use driftline_server::admin::{self, Host};
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    task::{JoinHandle, JoinSet},
};

use super::{Answer, Call, MAX_COMMAND, VERSION};
use crate::error::CliError;

/// A socket that is listened on until it is closed.
pub struct Listening {
    path: PathBuf,
    accepting: JoinHandle<()>,
}

impl Listening {
    /// Listens, under the folder's lock: a socket that lies there was left
    /// behind by a process that was killed.
    ///
    /// # Errors
    /// [`CliError::Failed`] if the socket cannot be made.
    pub fn start(path: &Path, host: Host) -> Result<Self, CliError> {
        let listener = bind(path).map_err(|error| {
            let path = path.display();
            CliError::failed(format!(
                "the socket {path} cannot be made: {error}; a shorter --data may help"
            ))
        })?;
        let accepting = tokio::spawn(accept(listener, host));
        Ok(Self {
            path: path.to_owned(),
            accepting,
        })
    }

    /// Ends all conversations and removes the socket.
    pub async fn close(self) {
        let _ = std::fs::remove_file(&self.path);
        self.accepting.abort();
        let _ = self.accepting.await;
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn accept(listener: UnixListener, host: Host) {
    let mut conversations = JoinSet::new();
    let mut accepting = FaultLog::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if let Some(failed_ms) = accepting.succeeded(now_ms()) {
                        tracing::warn!("commands are accepted again, after {}", show_ms(failed_ms));
                    }
                    conversations.spawn(converse(stream, host.clone()));
                }
                Err(error) => {
                    if accepting.failed(Weight::Lasting, now_ms()) {
                        tracing::warn!(%error, "commands are not accepted; trying again");
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            },
            Some(_) = conversations.join_next() => {}
        }
    }
}

async fn converse(stream: UnixStream, host: Host) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        let Ok(1..) = (&mut stream).take(MAX_COMMAND).read_line(&mut line).await else {
            return;
        };
        let answer = match answer(&host, &line).await {
            Ok(reply) => Answer::Ok(reply),
            Err(error) => Answer::Error(error),
        };
        let Ok(mut text) = serde_json::to_string(&answer) else {
            return;
        };
        text.push('\n');
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn answer(host: &Host, line: &str) -> Result<Box<RawValue>, CommandError> {
    let call: Call<Box<RawValue>> = serde_json::from_str(line).map_err(admin::not_understood)?;
    if call.version != VERSION {
        return Err(admin::not_understood(format!(
            "it is of driftline {}, the server of {VERSION}",
            call.version
        )));
    }
    let host = host.clone().acting_as(call.account.as_ref()).await?;
    admin::answer(&host, &call.command, &call.request).await
}
