//! A running service of IDs, and what is asked of it.

use std::{
    net::SocketAddr,
    path::Path,
    process::Stdio,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use driftline_id::{Layout, window::Record};
use driftline_id_service::thrift::Client;
use driftline_net::{Http, Options};
use serde_json::Value;

use crate::support::{DataDir, Ended, Running, soon};

/// `id serve` on ports of its own; killed when it is dropped.
pub struct Service {
    pub running: Running,
    pub thrift: SocketAddr,
    /// Its URL, if it has one.
    pub http: Option<String>,
    pub node: u64,
}

impl Service {
    /// Starts it, and waits until it says that it is ready.
    pub fn start(data_dir: &DataDir, arguments: &[&str]) -> Self {
        let mut running = data_dir.start(&serve(arguments));
        let line = running.line();
        let started: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("unexpected line {line:?}"));
        assert_eq!(started["layout"], "twitter", "{line}");
        Self {
            running,
            thrift: started["thrift"].as_str().unwrap().parse().unwrap(),
            http: started["http"].as_str().map(str::to_owned),
            node: started["node"].as_u64().unwrap(),
        }
    }

    /// With HTTP too.
    pub fn with_http(data_dir: &DataDir) -> Self {
        Self::start(data_dir, &["--listen-http", "127.0.0.1:0"])
    }

    pub fn client(&self) -> Client {
        client(self.thrift)
    }

    /// A URL of its HTTP.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.http.as_ref().unwrap())
    }

    /// Ends it in order.
    pub fn stop(mut self) {
        self.running.stop();
    }
}

/// Waits where the disk stalls for so long that no window is recorded, instead of refusing: other
/// tests write too.
pub const PATIENT: [&str; 2] = ["--wait", "60s"];

/// The command line of a service that prints JSON.
pub fn serve<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let start = ["--json", "id", "serve", "--listen-thrift", "127.0.0.1:0"];
    [&start, arguments].concat()
}

/// Runs what is to end by itself. A service that starts after all is killed after a minute.
pub fn run(data_dir: &DataDir, arguments: &[&str]) -> Ended {
    let mut child = data_dir
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if !soon(|| child.try_wait().unwrap().is_some()) {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    Ended::of(output)
}

pub fn client(address: SocketAddr) -> Client {
    Client::connect(address, Duration::from_secs(60)).unwrap()
}

pub fn id(client: &mut Client) -> u64 {
    let id = client.call("get_id", Some("a-test")).unwrap();
    u64::try_from(id).unwrap()
}

/// When an ID was made, in Unix ms.
pub fn time_ms(id: u64) -> i64 {
    Layout::TWITTER.time_ms(id.into())
}

/// The node that made an ID.
pub fn node_of(id: u64) -> u64 {
    (id >> 12) & 1023
}

/// What a data folder says of a node of the Twitter layout.
pub fn record(data: &Path, node: u64) -> Record {
    let path = data.join(format!("ids/twitter-{node}.window"));
    Record::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub fn now_us() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(passed.as_micros()).unwrap()
}

/// # Panics
/// If the IDs are not each larger than the one before.
pub fn assert_rising(ids: &[u64]) {
    let broken = ids.windows(2).find(|pair| pair[0] >= pair[1]);
    assert_eq!(broken, None, "of {} IDs", ids.len());
}

/// Asks over HTTP: the status and the text.
pub fn ask(method: &str, url: &str, headers: &[(&str, &str)]) -> (u16, String) {
    // This chooses the process's TLS provider, which every client needs.
    Http::new(Options::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = client.request(method.parse().unwrap(), url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    })
}
