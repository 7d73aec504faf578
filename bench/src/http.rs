//! HTTP on loopback: routes that are served, and a client that costs little next to the server that it measures.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use axum::Router;
use driftline_api::transport;
use tokio::{net::TcpListener, runtime::Runtime};

use crate::failure::Failure;

/// Serves routes while the runtime runs.
pub(crate) fn serve(runtime: &Runtime, router: Router) -> Result<SocketAddr, Failure> {
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    let address = listener.local_addr()?;
    let limits = transport::Limits::default();
    let serving = transport::serve(listener, router, limits, std::future::pending());
    runtime.spawn(serving);
    Ok(address)
}

/// A runtime with one thread beside those that block on it.
pub(crate) fn one_thread() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(1).enable_all().build()?)
}

/// A connection that is kept alive.
pub(crate) struct Connection {
    /// The server's bytes.
    pub(crate) answers: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            answers: BufReader::with_capacity(256 * 1024, stream),
            body: Vec::new(),
        })
    }

    /// Sends a request.
    pub(crate) fn send(
        &mut self,
        method_and_target: &str,
        token: Option<&str>,
        body: &str,
    ) -> Result<(), Failure> {
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let token = token.unwrap_or_default();
        let length = body.len();
        let request = format!(
            "{method_and_target} HTTP/1.1\r\nHost: localhost\r\n{token}\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        Ok(self.answers.get_mut().write_all(request.as_bytes())?)
    }

    /// Sends a request, and returns the body of its answer.
    pub(crate) fn ask(
        &mut self,
        method_and_target: &str,
        token: Option<&str>,
        body: &str,
    ) -> Result<&[u8], Failure> {
        self.send(method_and_target, token, body)?;
        let mut line = String::new();
        let mut length = None;
        loop {
            line.clear();
            self.answers.read_line(&mut line)?;
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse()?);
            }
            match line.trim_end() {
                "" => break,
                status if status.starts_with("HTTP/1.1") && !status.contains(" 200 ") => {
                    return Err(Failure::new(format!("{method_and_target}: {status}")));
                }
                _ => {}
            }
        }
        let length = length.ok_or_else(|| Failure::new("an answer without a length"))?;
        self.body.resize(length, 0);
        self.answers.read_exact(&mut self.body)?;
        Ok(&self.body)
    }
}
