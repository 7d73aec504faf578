//! A client of the protocol that stores nothing.

use std::time::{Duration, Instant};

use driftline_core::sync::{
    ACCOUNT_LIBRARY, DigestAnswer, LibraryRequest, SyncAnswer, SyncRequest,
};
use serde_json::Value;

use super::server::Server;
use crate::{failure::Failure, http::Connection, rounds::Times};

/// A client of a server's account, whose connection is kept alive.
pub(super) struct Client {
    connection: Connection,
    token: String,
}

/// Pulls without news.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoNews {
    pub(super) times: Times,
    /// The median size of the answers' bodies.
    pub(super) bytes: usize,
    /// The size of the largest one: answers at random times have new cursors of sources.
    pub(super) max_bytes: usize,
}

impl Client {
    pub(super) fn connect(server: &Server) -> Result<Self, Failure> {
        Ok(Self {
            connection: Connection::open(server.address)?,
            token: server.token()?,
        })
    }

    /// Pulls libraries without news, so many times: the account's own, and those of sources. The client has everything of
    /// the account's own library by its cursor, and copies the sources first.
    pub(super) fn no_news(
        &mut self,
        server: &Server,
        libraries: usize,
        pulls: usize,
    ) -> Result<NoNews, Failure> {
        let names: Value = serde_json::from_slice(self.ask(LIBRARIES, "")?)?;
        let names = names.as_array().into_iter().flatten();
        let names = names.filter_map(|name| name["library"].as_str());
        let request = |library: &str| LibraryRequest {
            filter: None,
            library: library.to_owned(),
            cursor: None,
        };
        let mut wanted: Vec<LibraryRequest> = names.take(libraries).map(request).collect();
        if wanted.len() != libraries {
            return Err(Failure::new("the account may read too few libraries"));
        }
        let own = wanted.iter_mut().find(|of| of.library == ACCOUNT_LIBRARY);
        if let Some(own) = own {
            own.cursor = Some(server.cursor()?.to_string());
        }
        let mut body = pull_of(&wanted)?;
        loop {
            let answer: SyncAnswer = serde_json::from_slice(self.ask(PULL, &body)?)?;
            if answer.news.is_empty() {
                break;
            }
            for news in answer.news {
                let of_it = wanted.iter_mut().find(|of| of.library == news.library);
                if let Some(of_it) = of_it {
                    of_it.cursor = news.cursor;
                }
            }
            body = pull_of(&wanted)?;
        }
        let (mut times, mut sizes) = (Vec::new(), Vec::new());
        for _ in 0..pulls {
            let begun = Instant::now();
            sizes.push(self.ask(PULL, &body)?.len());
            times.push(begun.elapsed());
        }
        sizes.sort_unstable();
        Ok(NoNews {
            times: Times::of(times),
            bytes: sizes.get(pulls / 2).copied().unwrap_or_default(),
            max_bytes: sizes.last().copied().unwrap_or_default(),
        })
    }

    /// Asks for the digest of the account's library, which must have so many objects, and returns the time that it took.
    pub(super) fn digest(&mut self, objects: usize) -> Result<Duration, Failure> {
        let body = serde_json::to_string(&LibraryRequest {
            filter: None,
            cursor: None,
            library: ACCOUNT_LIBRARY.to_owned(),
        })?;
        let begun = Instant::now();
        let answer = self.ask(DIGEST, &body)?;
        let took = begun.elapsed();
        let answer: DigestAnswer = serde_json::from_slice(answer)?;
        match answer.count == objects as u64 {
            true => Ok(took),
            false => Err(Failure::new(format!(
                "the digest is of {} objects, not of {objects}",
                answer.count
            ))),
        }
    }

    fn ask(&mut self, method_and_target: &str, body: &str) -> Result<&[u8], Failure> {
        self.connection
            .ask(method_and_target, Some(&self.token), body)
    }
}

fn pull_of(libraries: &[LibraryRequest]) -> Result<String, Failure> {
    Ok(serde_json::to_string(&SyncRequest {
        libraries: libraries.to_vec(),
        max_entries: None,
        max_bytes: None,
    })?)
}

const PULL: &str = "POST /api/driftline/v1/sync";
const DIGEST: &str = "POST /api/driftline/v1/sync/digest";
const LIBRARIES: &str = "GET /api/driftline/v1/sync/libraries";
