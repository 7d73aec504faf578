//! Downloading attachments: one request at a time to a host, a few hosts at once.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE},
};
use bytesize::ByteSize;
use driftline_net::{FetchErrorKind, Http, OpenAnswer, Opened};
use driftline_runtime::now_ms;
use driftline_server::admin::SourceRow;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, timeout_at},
};
use url::Url;

use super::part::wrong;
use crate::{checksum::Hashing, durable, error::CliError};

/// A file that was fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// Its name in the folder `media`.
    pub file: String,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
    /// Its type, as the server says.
    pub content_type: Option<String>,
    /// When it was fetched, Unix ms.
    pub fetched_at_ms: i64,
}

/// Why an address was not fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFetched {
    /// In words.
    pub error: String,
    /// Whether this counts as a try: else its server was not asked, or wants to be left alone for now.
    pub is_try: bool,
}

impl NotFetched {
    fn tried(error: String) -> Self {
        Self {
            error,
            is_try: true,
        }
    }

    fn untried(error: String) -> Self {
        Self {
            error,
            is_try: false,
        }
    }
}

/// What downloads.
pub struct Fetching {
    folder: PathBuf,
    http: Http,
    /// The clients of sources whose own server may be in a private network.
    trusting: HashMap<String, Http>,
    max_bytes: u64,
    /// What is here, by address.
    known: HashMap<String, Fetched>,
}

/// Why a file is not here.
enum Failure {
    /// What was asked for was not given.
    Refused(String),
    /// No server was asked: the address is private, or leads to none.
    NotSent(String),
    /// Nor is anything else given now.
    HeldBack(String),
    /// It cannot be written.
    Write(CliError),
}

impl Fetching {
    /// Into this folder, which is made.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be.
    pub fn new(
        folder: PathBuf,
        http: Http,
        max_bytes: u64,
        sources: &[SourceRow],
        known: HashMap<String, Fetched>,
    ) -> Result<Self, CliError> {
        fs::create_dir_all(&folder).map_err(|error| wrong(&folder, error))?;
        let mut trusting = HashMap::new();
        for source in sources.iter().filter(|source| source.allow_private) {
            if let Ok(server) = source.upstream.parse() {
                let http = http.trusting(&server).map_err(CliError::usage)?;
                trusting.insert(source.name.clone(), http);
            }
        }
        Ok(Self {
            folder,
            http,
            trusting,
            max_bytes,
            known,
        })
    }

    /// Fetches addresses that sources have, but for those that are here. A failure costs nothing but its address.
    ///
    /// # Errors
    /// [`CliError`] if a file cannot be written.
    pub async fn fetch(
        &mut self,
        addresses: Vec<(String, String)>,
    ) -> Result<HashMap<String, Result<Fetched, NotFetched>>, CliError> {
        let mut outcomes = HashMap::new();
        let mut hosts: HashMap<String, Vec<(Http, String, Url)>> = HashMap::new();
        for (source, address) in addresses {
            if let Some(known) = self.known.get(&address) {
                outcomes.insert(address, Ok(known.clone()));
                continue;
            }
            match address.parse::<Url>() {
                Ok(url) if matches!(url.scheme(), "http" | "https") => {
                    let http = self.trusting.get(&source).unwrap_or(&self.http).clone();
                    let host = url.host_str().unwrap_or_default().to_owned();
                    hosts.entry(host).or_default().push((http, address, url));
                }
                _ => {
                    let error = "it is no http or https address".to_owned();
                    outcomes.insert(address, Err(NotFetched::tried(error)));
                }
            }
        }
        let permits = Arc::new(Semaphore::new(MAX_HOSTS));
        let mut tasks = JoinSet::new();
        for queue in hosts.into_values() {
            let (permits, folder) = (Arc::clone(&permits), self.folder.clone());
            let max_bytes = self.max_bytes;
            tasks.spawn(async move {
                let _permit = permits.acquire().await;
                of_host(queue, &folder, max_bytes).await
            });
        }
        while let Some(ended) = tasks.join_next().await {
            for (address, outcome) in ended.map_err(CliError::failed)?? {
                if let Ok(fetched) = &outcome {
                    self.known.insert(address.clone(), fetched.clone());
                }
                outcomes.insert(address, outcome);
            }
        }
        Ok(outcomes)
    }
}

/// Fetches from one host, one after the other.
async fn of_host(
    queue: Vec<(Http, String, Url)>,
    folder: &Path,
    max_bytes: u64,
) -> Result<Vec<(String, Result<Fetched, NotFetched>)>, CliError> {
    let mut outcomes = Vec::new();
    let mut held_back: Option<NotFetched> = None;
    for (http, address, url) in queue {
        if let Some(error) = &held_back {
            outcomes.push((address, Err(error.clone())));
            continue;
        }
        let outcome = match one(&http, url, folder, max_bytes).await {
            Ok(fetched) => Ok(fetched),
            Err(Failure::Refused(error)) => Err(NotFetched::tried(error)),
            Err(Failure::NotSent(error)) => Err(NotFetched::untried(error)),
            Err(Failure::HeldBack(error)) => {
                held_back = Some(NotFetched::untried(format!("not requested: {error}")));
                Err(NotFetched::untried(error))
            }
            Err(Failure::Write(error)) => return Err(error),
        };
        outcomes.push((address, outcome));
    }
    Ok(outcomes)
}

async fn one(http: &Http, url: Url, folder: &Path, max_bytes: u64) -> Result<Fetched, Failure> {
    let deadline = Instant::now() + TOTAL_TIMEOUT;
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("*/*"))]);
    let opened = http.open_public(url.clone(), headers, StatusCode::OK);
    let opened = opened.await.map_err(|error| {
        use FetchErrorKind::{NoConnection, PrivateAddress, UnknownName};
        match error.kind {
            NoConnection(_) | PrivateAddress(_) | UnknownName { .. } => {
                Failure::NotSent(error.to_string())
            }
            _ => Failure::Refused(error.to_string()),
        }
    })?;
    let mut answer = match opened {
        Opened::Stream(answer) => answer,
        Opened::Refused(answer) => {
            let status = answer.status;
            let text = format!("{}: the server answered {status}", answer.location);
            return Err(match status {
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                    Failure::HeldBack(text)
                }
                _ => Failure::Refused(text),
            });
        }
    };
    let header = |name| {
        let value = answer.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let content_type = header(CONTENT_TYPE);
    let announced: Option<u64> = header(CONTENT_LENGTH).and_then(|text| text.parse().ok());
    if announced.is_some_and(|bytes| bytes > max_bytes) {
        return Err(too_large(max_bytes));
    }
    let unwritten = |error: io::Error| Failure::Write(wrong(folder, error));
    // Removed when it is dropped without a name.
    let part = tempfile::Builder::new()
        .prefix("fetch-")
        .suffix(".part")
        .tempfile_in(folder)
        .map_err(unwritten)?;
    let mut file = Hashing::new(part.as_file().try_clone().map_err(unwritten)?);
    let silence = http.options().read_timeout;
    body(&mut answer, &mut file, max_bytes, deadline, silence).await?;
    let (file, sha256, bytes) = file.end();
    let name = format!("{sha256}.{}", ending(content_type.as_deref(), &url));
    keep(part, &file, &folder.join(&name)).map_err(unwritten)?;
    Ok(Fetched {
        file: name,
        sha256,
        bytes,
        content_type,
        fetched_at_ms: now_ms(),
    })
}

async fn body(
    answer: &mut OpenAnswer,
    file: &mut Hashing<File>,
    max_bytes: u64,
    deadline: Instant,
    silence: Duration,
) -> Result<(), Failure> {
    let mut bytes = 0;
    loop {
        let limit = deadline.min(Instant::now() + silence);
        let Ok(chunk) = timeout_at(limit, answer.chunk()).await else {
            return Err(Failure::Refused("it did not come in time".to_owned()));
        };
        let chunk = chunk.map_err(|error| Failure::Refused(error.to_string()))?;
        let Some(chunk) = chunk else {
            return Ok(());
        };
        let chunk = chunk.as_ref();
        bytes += chunk.len() as u64;
        if bytes > max_bytes {
            return Err(too_large(max_bytes));
        }
        file.write_all(chunk)
            .map_err(|error| Failure::Write(CliError::failed(format!("an attachment: {error}"))))?;
    }
}

/// Gives a file its name, once it is durable; one that has the name already stays.
fn keep(part: tempfile::NamedTempFile, file: &File, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    match part.persist_noclobber(path) {
        Ok(_) => durable::sync_folder(durable::parent(path)),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.error),
    }
}

fn too_large(max_bytes: u64) -> Failure {
    let max = ByteSize::b(max_bytes);
    Failure::Refused(format!("it is larger than {max} (--media-max-size)"))
}

/// How a file's name ends: by its type, or as the address does.
fn ending(content_type: Option<&str>, url: &Url) -> String {
    let kind = content_type.and_then(|text| text.split(';').next());
    let kind = kind.unwrap_or_default().trim().to_ascii_lowercase();
    let known = ENDINGS.iter().find(|(name, _)| *name == kind);
    if let Some((_, ending)) = known {
        return (*ending).to_owned();
    }
    let last = url.path().rsplit('/').next().unwrap_or_default();
    let ending = last.rsplit_once('.').map_or("", |(_, ending)| ending);
    match (1..=8).contains(&ending.len()) && ending.bytes().all(|b| b.is_ascii_alphanumeric()) {
        true => ending.to_ascii_lowercase(),
        false => "bin".to_owned(),
    }
}

const ENDINGS: [(&str, &str); 16] = [
    ("image/jpeg", "jpg"),
    ("image/png", "png"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/avif", "avif"),
    ("image/heic", "heic"),
    ("image/svg+xml", "svg"),
    ("video/mp4", "mp4"),
    ("video/webm", "webm"),
    ("video/quicktime", "mov"),
    ("audio/mpeg", "mp3"),
    ("audio/mp4", "m4a"),
    ("audio/ogg", "ogg"),
    ("audio/flac", "flac"),
    ("audio/wav", "wav"),
    ("application/pdf", "pdf"),
];
/// So many hosts are asked at once.
const MAX_HOSTS: usize = 4;
/// The most that a file may take.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(300);
