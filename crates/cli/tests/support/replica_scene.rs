//! A server with an account and some posts, and the commands on replicas of the account.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of this"
)]

use std::net::TcpListener;

use driftline_sim::http::SimServer;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::{DataDir, Ended, Running, browser::client, lines, quiet::quiet};

/// A server with an account and some posts.
pub struct Scene {
    pub data_dir: DataDir,
    pub address: String,
    pub server: Option<Running>,
    pub client: Client,
    pub token: String,
    /// The posts' `uri`s and IDs, newest first.
    pub posts: Vec<(String, String)>,
}

impl Scene {
    /// With the posts of a timeline that has fallen silent.
    pub async fn begin() -> Self {
        let sim = quiet(1.0, 1).await;
        Self::with_upstream(&sim, "").await
    }

    /// With the posts of this upstream, and more in the configuration.
    pub async fn with_upstream(sim: &SimServer, config: &str) -> Self {
        Self::in_data_dir(DataDir::new(), sim, config).await
    }

    /// The same in this data folder.
    pub async fn in_data_dir(data_dir: DataDir, sim: &SimServer, config: &str) -> Self {
        let config = format!("[upstream]\nallow_private = true\n{config}");
        data_dir.file("driftline.toml", &config);
        data_dir.mirror(&sim.url(), "sim");
        data_dir.account("ann", PASSPHRASE);
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut scene = Self {
            data_dir,
            address: format!("127.0.0.1:{port}"),
            server: None,
            client: client(),
            token: String::new(),
            posts: Vec::new(),
        };
        scene.start();
        scene.log_in("ann").await;
        let posts = scene.get("/api/v1/timelines/public?limit=10").await;
        let of = |post: &Value, name: &str| post[name].as_str().unwrap().to_owned();
        let posts = posts.as_array().unwrap().iter();
        scene.posts = posts
            .map(|post| (of(post, "uri"), of(post, "id")))
            .collect();
        assert!(scene.posts.len() >= 4);
        scene
    }

    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn start(&mut self) {
        let serve = ["--json", "serve", "--listen", &self.address];
        let mut server = self.data_dir.start(&serve);
        assert!(server.line().contains(&self.address));
        self.server = Some(server);
    }

    /// Ends the server as a power cut does.
    pub fn kill(&mut self) {
        self.server.take().unwrap().kill();
    }

    /// Gets a token by the password grant, into the file `token`.
    pub async fn log_in(&mut self, name: &str) {
        let scopes = "read write";
        let oob = "urn:ietf:wg:oauth:2.0:oob";
        let app = json!({ "client_name": "replica", "redirect_uris": oob, "scopes": scopes });
        let app = self.post("/api/v1/apps", &app).await;
        let grant = json!({
            "grant_type": "password", "username": name, "password": PASSPHRASE, "scope": scopes,
            "client_id": app["client_id"], "client_secret": app["client_secret"],
        });
        let token = self.post("/oauth/token", &grant).await;
        self.token = token["access_token"].as_str().unwrap().to_owned();
        self.data_dir.file("token", &format!("{}\n", self.token));
    }

    pub async fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}{path}", self.base()));
        self.answered(request).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.base()));
        let request = request.header("content-type", "application/json");
        self.answered(request.body(body.to_string())).await
    }

    /// The JSON of a request's answer, which must be good.
    pub async fn answered(&self, request: RequestBuilder) -> Value {
        let request = match self.token.is_empty() {
            true => request,
            false => request.bearer_auth(&self.token),
        };
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status.as_u16(), 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The `uri`s of the account's bookmarks on the server, sorted.
    pub async fn bookmarks(&self) -> Vec<String> {
        let page = self.get("/api/v1/bookmarks").await;
        let posts = page.as_array().unwrap().iter();
        let mut uris: Vec<String> = posts
            .map(|post| post["uri"].as_str().unwrap().to_owned())
            .collect();
        uris.sort();
        uris
    }

    pub fn uri(&self, post: usize) -> &str {
        &self.posts[post].0
    }

    /// Runs a command on a replica.
    pub fn run(&self, replica: &str, arguments: &[&str]) -> Ended {
        let mut all = vec!["--json", "replica", "--replica", replica];
        all.extend(arguments);
        let ended = self.data_dir.run(&all);
        for output in [&ended.stdout, &ended.stderr] {
            assert!(!output.contains(&self.token), "{output}");
        }
        ended
    }

    /// The lines of JSON of a command on a replica, which must succeed.
    pub fn replica(&self, replica: &str, arguments: &[&str]) -> Vec<Value> {
        let ended = self.run(replica, arguments);
        assert_eq!(ended.status, 0, "{arguments:?}: {ended:?}");
        lines(&ended.stdout)
    }

    /// Starts a command on a replica.
    pub fn start_replica(&self, replica: &str, arguments: &[&str]) -> Running {
        let mut all = vec!["--json", "replica", "--replica", replica];
        all.extend(arguments);
        self.data_dir.start(&all)
    }

    pub fn init(&self, replica: &str) {
        self.init_at(replica, &self.base());
    }

    /// Makes a replica that reaches the server at this address.
    pub fn init_at(&self, replica: &str, url: &str) {
        let made = self.replica(replica, &["init", url, "--token-file", "token"]);
        assert_eq!(made[0]["outcome"], "made", "{made:?}");
    }
}

pub const PASSPHRASE: &str = "correct horse battery";
