//! A server that answers from a script, and a folder for a replica of it.
pub mod notes;
pub mod sources;

use std::{
    collections::VecDeque,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use driftline_core::sync::ObjectKey;
use driftline_replica::{
    Backoff, Client, Direction, InitOutcome, Replica, ReplicaError, Retries, ServerUrl,
    SyncContext, SyncReport, Token,
};
use serde_json::{Value, json};

/// The next answer of the server.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A status and a JSON body.
    Json(u16, Value),
    /// Server-sent events, after which the connection is closed.
    Events(&'static str),
    /// The connection is closed without an answer.
    Lost,
}

/// Work between a request and its answer.
type Work = Box<dyn FnOnce() + Send>;

/// A request that the server has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub authorization: String,
    pub body: String,
}

impl Request {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn is_push(&self) -> bool {
        self.path.ends_with("/push")
    }

    /// The cursor of a pull.
    pub fn cursor(&self) -> Value {
        self.json()["libraries"][0]["cursor"].clone()
    }
}

/// Answers, each with work that is done before it.
type Script = VecDeque<(Answer, Option<Work>)>;

/// A server that answers from a script.
pub struct Server {
    address: String,
    answers: Arc<Mutex<Script>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap().to_string(),
            answers: Arc::default(),
            requests: Arc::default(),
        };
        let (answers, requests) = (Arc::clone(&server.answers), Arc::clone(&server.requests));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read(&stream);
                requests.lock().unwrap().push(request);
                let next = answers.lock().unwrap().pop_front();
                let none_left = || (Answer::Json(400, json!({"error": "no answer left"})), None);
                let (answer, work) = next.unwrap_or_else(none_left);
                if let Some(work) = work {
                    work();
                }
                match answer {
                    Answer::Json(status, body) => write(&mut stream, status, &body.to_string()),
                    Answer::Events(text) => write(&mut stream, 200, text),
                    Answer::Lost => {}
                }
            }
        });
        server
    }

    /// A server that refuses connections.
    pub fn refusing() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self {
            address: listener.local_addr().unwrap().to_string(),
            answers: Arc::default(),
            requests: Arc::default(),
        }
    }

    /// Adds an answer to the script.
    pub fn then(&self, answer: Answer) {
        self.answers.lock().unwrap().push_back((answer, None));
    }

    /// Does this between the request for the last answer of the script and that answer.
    pub fn meanwhile(&self, work: impl AsyncFnOnce() + Send + 'static) {
        let work = move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(work());
        };
        let mut answers = self.answers.lock().unwrap();
        answers.back_mut().unwrap().1 = Some(Box::new(work));
    }

    /// Adds an answer to a pull.
    #[expect(clippy::needless_pass_by_value, reason = "calls are shorter so")]
    pub fn then_news(&self, news: Value) {
        self.then(Answer::Json(
            200,
            json!({"server": SERVER, "account": ACCOUNT, "news": news}),
        ));
    }

    /// The requests since the last call.
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// The number of answers that were not asked for.
    pub fn answers_left(&self) -> usize {
        self.answers.lock().unwrap().len()
    }

    pub fn url(&self) -> ServerUrl {
        format!("http://{}", self.address).parse().unwrap()
    }
}

fn read(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => authorization = value.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Request {
        path,
        authorization,
        body: String::from_utf8(body).unwrap(),
    }
}

fn write(stream: &mut TcpStream, status: u16, body: &str) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).unwrap();
}

/// A folder with a replica, and what a test does with it.
pub struct Device {
    folder: tempfile::TempDir,
    token: &'static str,
}

impl Device {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            token: TOKEN,
        }
    }

    /// The same with another token.
    #[must_use]
    pub fn with_token(mut self, token: &'static str) -> Self {
        self.token = token;
        self
    }

    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("replica")
    }

    pub fn client(&self, server: &Server) -> Client {
        let token = Token::read(self.token.as_bytes()).unwrap();
        Client::new(&server.url(), token, ONCE).unwrap()
    }

    /// Makes the replica, or renews its token. The server's next answer is the first one that is used.
    pub(crate) async fn init(&self, server: &Server) -> Result<InitOutcome, ReplicaError> {
        let client = self.client(server);
        let (replica, outcome) = Replica::init(&self.folder(), &client, &mut random).await?;
        replica.close().await;
        Ok(outcome)
    }

    /// A replica of a server that has just answered its first request.
    pub async fn made(server: &Server) -> Self {
        let device = Self::new();
        server.then_news(json!([]));
        assert_eq!(device.init(server).await.unwrap(), InitOutcome::Made);
        server.requests();
        device
    }

    pub async fn open(&self) -> Replica {
        Replica::open(&self.folder()).await.unwrap()
    }

    /// Opens the replica, syncs and closes it.
    pub(crate) async fn sync(&self, server: &Server) -> Result<SyncReport, ReplicaError> {
        self.sync_in(server, ONCE, false, Direction::Both).await
    }

    /// Syncs, and gets no answer to one of its requests.
    pub async fn lose_answer(&self, server: &Server) {
        let error = self.sync(server).await.unwrap_err();
        assert!(matches!(error, ReplicaError::Unreachable { .. }), "{error}");
    }

    pub(crate) async fn sync_with(
        &self,
        server: &Server,
        retries: Retries,
        may_remove_many: bool,
    ) -> Result<SyncReport, ReplicaError> {
        let direction = Direction::Both;
        self.sync_in(server, retries, may_remove_many, direction)
            .await
    }

    /// Only pulls, or only pushes.
    pub(crate) async fn sync_only(
        &self,
        server: &Server,
        direction: Direction,
    ) -> Result<SyncReport, ReplicaError> {
        self.sync_in(server, ONCE, false, direction).await
    }

    async fn sync_in(
        &self,
        server: &Server,
        retries: Retries,
        may_remove_many: bool,
        direction: Direction,
    ) -> Result<SyncReport, ReplicaError> {
        let token = Token::read(self.token.as_bytes())?;
        let client = Client::new(&server.url(), token, retries)?;
        let replica = self.open().await;
        let mut random = random;
        let mut context = SyncContext {
            may_remove_many,
            ..SyncContext::new(NOW_MS, &mut random)
        };
        let outcome = replica.sync(&client, &mut context, direction).await;
        replica.close().await;
        outcome
    }

    /// Edits an object. Returns true if that changed it.
    pub async fn edit(&self, key: &str, value: Option<Value>) -> bool {
        let replica = self.open().await;
        let edited = replica.edit(ObjectKey::parse(key).unwrap(), value).await;
        replica.close().await;
        edited.unwrap().changed
    }

    /// The keys and values of the objects.
    pub async fn objects(&self) -> Vec<(String, Value)> {
        let replica = self.open().await;
        let objects = replica.objects(None).await.unwrap().into_iter();
        let objects = objects.map(|object| (object.key.to_string(), object.value));
        let objects = objects.collect();
        replica.close().await;
        objects
    }
}

/// An object of the account's library.
pub fn object(key: &str, usn: u64, value: &Value) -> Value {
    json!({"key": key, "usn": usn.to_string(), "value": value})
}

/// The answer to a push of changes that got these USNs.
pub fn stored(changes: &[(&str, u64)], before: &str, after: &str) -> Answer {
    let result =
        |(key, usn): &(&str, u64)| json!({"key": key, "status": "done", "usn": usn.to_string()});
    let results: Vec<Value> = changes.iter().map(result).collect();
    let answer = json!({
        "server": SERVER, "account": ACCOUNT, "before": before, "after": after, "results": results,
    });
    Answer::Json(200, answer)
}

/// Different numbers at each call.
pub fn random() -> u128 {
    static NEXT: Mutex<u128> = Mutex::new(1 << 100);
    let mut next = NEXT.lock().unwrap();
    *next += 1;
    *next
}

/// Each request is sent once.
pub const ONCE: Retries = Retries {
    max_tries: 1,
    backoff: QUICK,
};
/// Waits of some milliseconds.
pub const QUICK: Backoff = Backoff::from_first(Duration::from_millis(1));
pub const SERVER: &str = "5c00";
pub const ACCOUNT: &str = "113";
pub const TOKEN: &str = "a-secret-token";
pub const NOW_MS: i64 = 1_790_000_000_000;
