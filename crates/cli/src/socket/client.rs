//! The command line's end.

use std::{io, path::Path};

use driftline_core::social::AccountName;
use driftline_server::admin::Request;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
};

use super::{Answer, Call, VERSION};
use crate::error::CliError;

/// A conversation with the process that holds the data folder.
pub struct Client {
    stream: BufReader<UnixStream>,
    /// As whom commands are executed; without one as the operator.
    account: Option<AccountName>,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// If no process listens there.
    pub async fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self {
            stream: BufReader::new(UnixStream::connect(path).await?),
            account: None,
        })
    }

    /// The same for commands that are executed as an account.
    #[must_use]
    pub fn acting_as(self, account: Option<AccountName>) -> Self {
        Self { account, ..self }
    }

    /// Executes a command.
    ///
    /// # Errors
    /// [`CliError`] as the other process says, or if it ends meanwhile.
    pub async fn execute<R: Request>(&mut self, request: R) -> Result<R::Reply, CliError> {
        let gone = |error: io::Error| {
            CliError::failed(format!(
                "the server ended before it answered ({error}); look at its log and try again"
            ))
        };
        let not_json = |error: serde_json::Error| {
            CliError::failed(format!(
                "the server's answer is not understood ({error}); use the same version of driftline for both"
            ))
        };
        let call = Call {
            version: VERSION.to_owned(),
            command: R::NAME.to_owned(),
            account: self.account.clone(),
            request,
        };
        let mut text = serde_json::to_string(&call).map_err(not_json)?;
        text.push('\n');
        self.stream.write_all(text.as_bytes()).await.map_err(gone)?;
        let mut line = String::new();
        if self.stream.read_line(&mut line).await.map_err(gone)? == 0 {
            return Err(gone(io::ErrorKind::UnexpectedEof.into()));
        }
        match serde_json::from_str(&line).map_err(not_json)? {
            Answer::Ok(reply) => Ok(reply),
            Answer::Error(error) => Err(error.into()),
        }
    }
}
