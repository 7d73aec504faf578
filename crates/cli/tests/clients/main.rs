//! Real clients of Mastodon's API, each with every method whose route there is, against the real
//! binary while it mirrors a server. `docs/clients.md` lists them.
#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may panic, and nothing of it can be reached"
)]

mod javascript;
mod logging_in;
mod python;
mod reading;
#[path = "../support/mod.rs"]
mod support;
mod toot;

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
};

use driftline_sim::{
    SpanMs, WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use serde_json::{Value, json};
use support::{DataDir, Running, get, wait_for};

const TOKEN: &str = "an-operators-token-of-some-length-1";

/// A server with an operator's token that mirrors another, which goes on publishing.
pub struct Mirror {
    /// Its address.
    pub url: String,
    /// The source as a list.
    pub list: String,
    /// A post that was edited.
    pub edited: String,
    /// Where it keeps its data, with room for files next to it.
    pub data_dir: DataDir,
    _server: Running,
    _upstream: SimServer,
}

impl Mirror {
    /// Starts both, and waits until there are three pages.
    pub async fn start() -> Mirror {
        Self::of(WorldConfig::punctual(20.0)).await
    }

    /// [`Mirror::start`], of a server that publishes so, with edits.
    pub async fn of(world: WorldConfig) -> Mirror {
        let config = ServerConfig {
            world: WorldConfig {
                edited_share: 0.3,
                edited_after_ms: SpanMs::new(600, 1_200),
                deleted_share: 0.0,
                non_public_share: 0.0,
                ..world
            },
            ..ServerConfig::default()
        };
        let upstream = SimServer::start(config, 1, Clock::Real).await.unwrap();
        let data_dir = DataDir::new();
        let token = data_dir.file("token", TOKEN);
        let (server, url) = data_dir.serve(&["--allow-private", "--token-file", &token]);
        let (address, second_look) = (upstream.url(), ["--second-look", "2s"]);
        let mut add = vec![
            "source", "add", &address, "--name", "sim", "--every", "200ms",
        ];
        add.extend(second_look);
        let list = data_dir.json(&add)["id"].clone();
        let list = list
            .as_str()
            .map_or_else(|| list.to_string(), str::to_owned);
        let mut edited = None;
        wait_for("three pages, and an edit", || {
            let statuses = page(&url, "limit=40");
            let of_old = statuses.last().map_or(Vec::new(), |oldest| {
                let max_id = oldest["id"].as_str().unwrap();
                page(&url, &format!("limit=40&max_id={max_id}"))
            });
            let mut all = statuses.iter().chain(&of_old);
            edited = all.find(|status| !status["edited_at"].is_null()).cloned();
            edited.is_some() && of_old.len() == 40
        });
        Mirror {
            url,
            list,
            edited: edited.unwrap()["id"].as_str().unwrap().to_owned(),
            data_dir,
            _server: server,
            _upstream: upstream,
        }
    }

    /// What a client's script prints as JSON.
    pub fn script(&self, command: &mut Command) -> Value {
        self.printed(command.args([&self.url, TOKEN, &self.list, &self.edited]))
    }

    /// What a client's script with its arguments prints as JSON, once it has said that it streams.
    pub fn printed(&self, command: &mut Command) -> Value {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (mut line, mut rest) = (String::new(), String::new());
        stdout.read_line(&mut line).unwrap();
        stdout.read_to_string(&mut rest).unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(
            ended.status.success() && line == "streaming\n",
            "the script failed (is its library there? `cargo xtask setup` installs it):\n{said}"
        );
        serde_json::from_str(&rest).unwrap()
    }

    /// Checks what both libraries read alike.
    pub fn check(&self, read: &Value) {
        let ids =
            |name: &str| -> Vec<String> { serde_json::from_value(read[name].clone()).unwrap() };
        let number = |id: &String| id.parse::<u64>().unwrap();
        let down = ids("down");
        assert!(down.len() > 80, "three pages at least: {}", down.len());
        assert!(down.is_sorted_by_key(|id| std::cmp::Reverse(number(id))));
        let up = ids("up");
        assert!(up.len() >= down.len());
        assert!(up[..down.len()].iter().eq(down.iter().rev()));
        assert_eq!(ids("since"), down[1..5]);
        assert_eq!(ids("remote"), down[1..21]);
        assert_eq!(ids("list"), down[1..]);
        // The upstream's posts have no media, and none is written here.
        for name in ["local", "media"] {
            assert_eq!(ids(name), [""; 0], "{name}");
        }
        assert_eq!(read["lists"], json!([[self.list, "sim"]]));
        assert_eq!(read["one_list"], "sim");
        assert_eq!(read["status"], json!(down.last()));
        assert_eq!(
            read["thread"],
            json!([[], []]),
            "the simulated posts are no replies"
        );
        assert_eq!(read["versions"], 2);
        let titles = read["instances"].as_array().unwrap();
        assert!(
            titles.iter().all(|title| title == "Driftline"),
            "{titles:?}"
        );
    }
}

fn page(url: &str, query: &str) -> Vec<Value> {
    let (status, body) = get(&format!("{url}/api/v1/timelines/public?{query}"));
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}
