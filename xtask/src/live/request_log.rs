//! A proxy that counts requests by kind, between Driftline and a server.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::error::TaskError;

/// Requests by kind and status.
pub(super) type Counts = BTreeMap<(String, u16), u64>;

/// A proxy for one server. It changes no byte, and ends with the program.
pub(super) struct RequestLog {
    /// Where it listens, `127.0.0.1:PORT`.
    pub(super) address: String,
    counts: Arc<Mutex<Counts>>,
}

impl RequestLog {
    /// Starts to pass connections on to `server`.
    pub(super) fn start(server: &str) -> Result<RequestLog, TaskError> {
        let failed = |error| TaskError::Program("a proxy on loopback".to_owned(), error);
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?.to_string();
        let counts = Arc::new(Mutex::new(Counts::new()));
        let (server, log) = (server.to_owned(), Arc::clone(&counts));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (server, log) = (server.clone(), Arc::clone(&log));
                thread::spawn(move || match TcpStream::connect(&server) {
                    Ok(server) => {
                        // An end that hangs up ends both.
                        let _ = pass_on(client, server, &log);
                    }
                    Err(_) => count(&log, "no connection", 0),
                });
            }
        });
        Ok(RequestLog { address, counts })
    }

    /// What was asked for until now.
    pub(super) fn counts(&self) -> Counts {
        let counts = self.counts.lock();
        counts.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn count(log: &Mutex<Counts>, kind: &str, status: u16) {
    let mut counts = log.lock().unwrap_or_else(PoisonError::into_inner);
    *counts.entry((kind.to_owned(), status)).or_default() += 1;
}

/// Passes bytes both ways until one end hangs up. A client that waits for each answer begins each
/// request with a read of its own here.
fn pass_on(client: TcpStream, server: TcpStream, log: &Mutex<Counts>) -> io::Result<()> {
    let asked = Mutex::new(None::<String>);
    let (mut requests, mut answers) = (client.try_clone()?, server.try_clone()?);
    let (mut client, mut server) = (client, server);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = copy(&mut requests, &mut server, |bytes| {
                if let Some(kind) = kind_of_request(bytes) {
                    *asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind);
                }
            });
            let _ = server.shutdown(Shutdown::Both);
        });
        let _ = copy(&mut answers, &mut client, |bytes| {
            let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(kind) = asked {
                count(log, &kind, status_of(bytes));
            }
        });
        let _ = client.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn copy(from: &mut TcpStream, to: &mut TcpStream, see: impl Fn(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = from.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        see(&buffer[..length]);
        to.write_all(&buffer[..length])?;
    }
}

/// What a request asks for, without what differs between requests of one kind: the path with its
/// IDs as `ID`, and the names of the page's bounds. None for what Driftline never sends: a server
/// may deliver to itself.
fn kind_of_request(bytes: &[u8]) -> Option<String> {
    let line = bytes.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let target = line.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_id = |part: &&str| part.bytes().any(|byte| byte.is_ascii_digit()) && part.len() > 2;
    let parts = path
        .split('/')
        .map(|part| if is_id(&part) { "ID" } else { part });
    let mut kind = format!("GET {}", parts.collect::<Vec<_>>().join("/"));
    let bounds = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut bounds: Vec<&str> = bounds
        .filter(|(name, _)| BOUNDS.contains(name))
        .map(|(name, _)| name)
        .collect();
    bounds.sort_unstable();
    for bound in bounds {
        kind.push(' ');
        kind.push_str(bound);
    }
    Some(kind)
}

/// The status in an answer's first bytes; 0 if there is none.
fn status_of(bytes: &[u8]) -> u16 {
    let digits = bytes.get(9..12).and_then(|of| std::str::from_utf8(of).ok());
    digits.and_then(|of| of.parse().ok()).unwrap_or(0)
}

const BOUNDS: [&str; 3] = ["since_id", "min_id", "max_id"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_kind_count_as_one() {
        for (line, kind) in [
            (
                "GET /api/v1/timelines/home?limit=40&since_id=01ABC&max_id=2 HTTP/1.1\r\nhost: a",
                "GET /api/v1/timelines/home max_id since_id",
            ),
            (
                "GET /api/v1/statuses/01ABC HTTP/1.1\r\n",
                "GET /api/v1/statuses/ID",
            ),
            (
                "GET /api/v1/accounts/12345/statuses?limit=40 HTTP/1.1\r\n",
                "GET /api/v1/accounts/ID/statuses",
            ),
        ] {
            assert_eq!(kind_of_request(line.as_bytes()).as_deref(), Some(kind));
        }
        for other in ["{\"not\": \"a request\"}", "POST /inbox HTTP/1.1\r\n"] {
            assert_eq!(kind_of_request(other.as_bytes()), None);
        }
        assert_eq!(status_of(b"HTTP/1.1 404 Not Found"), 404);
        assert_eq!(status_of(b""), 0);
    }
}
