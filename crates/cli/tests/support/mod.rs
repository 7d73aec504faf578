//! The real binary, run in a folder of its own.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of this"
)]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

pub mod browser;
pub mod exported;
pub mod moody_server;
pub mod quiet;
pub mod replica_scene;
pub mod small_disk;

/// A data folder, and how the binary is run on it.
pub struct DataDir {
    folder: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

/// The log is kept in the file that `DRIFTLINE_TEST_LOG` names.
impl Drop for DataDir {
    fn drop(&mut self) {
        let Ok(path) = std::env::var("DRIFTLINE_TEST_LOG") else {
            return;
        };
        let file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(path);
        let _ = file.unwrap().write_all(self.log().as_bytes());
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn of(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl DataDir {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            environment: Vec::new(),
        }
    }

    /// Also where temporary files are kept in memory.
    pub fn on_disk() -> Self {
        Self {
            folder: tempfile::tempdir_in("/var/tmp").unwrap(),
            environment: Vec::new(),
        }
    }

    /// With a database, also with the key that all processes on one have.
    #[must_use]
    pub fn with(mut self, variable: &str, value: &str) -> Self {
        self.environment.push((variable.into(), value.into()));
        if variable == "DRIFTLINE_STORE__DATABASE_URL" {
            let key = Path::new(env!("CARGO_TARGET_TMPDIR")).join("credentials.key");
            let key = key.to_str().unwrap().to_owned();
            self.environment
                .push(("DRIFTLINE_STORE__CREDENTIALS_KEY".into(), key));
        }
        self
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A file next to the data folder.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The binary, with none of the settings of whoever runs the test.
    pub fn command(&self, arguments: &[&str]) -> Command {
        // A file that may not grow is an error of the write, and not the end of the process.
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_driftline"));
        for (name, _) in std::env::vars() {
            if name.starts_with("DRIFTLINE_") || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env("XDG_DATA_HOME", self.folder.path().join("share"))
            .env("HOME", self.folder.path())
            .envs(self.environment.iter().cloned())
            .arg("--data")
            .arg(self.data())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command(arguments).output().unwrap())
    }

    /// Runs it and reads the one JSON value that it must print.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let ended = self.run(&all);
        assert_eq!(ended.status, 0, "{arguments:?}: {ended:?}");
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }

    /// Creates an account whose mail address is `NAME@mail.example`. Returns what is printed.
    pub fn account(&self, name: &str, passphrase: &str) -> Value {
        let mail = format!("{name}@mail.example");
        let file = self.file("passphrase", passphrase);
        let create = ["account", "create", name, "--mail", &mail];
        self.json(&[&create[..], &["--passphrase-file", &file]].concat())
    }

    /// What is exported.
    pub fn export(&self, name: &str) -> Vec<Value> {
        let ended = self.run(&["export", name]);
        assert_eq!(ended.status, 0, "{ended:?}");
        lines(&ended.stdout)
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut child = self
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(self.log_file())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Running { child, stdout }
    }

    /// What the started processes have logged on standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("stderr")
    }

    fn log_file(&self) -> Stdio {
        let file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.log_path());
        file.unwrap().into()
    }

    /// A server on a free port, and its URL.
    pub fn serve(&self, arguments: &[&str]) -> (Running, String) {
        let mut all = vec!["--json", "serve", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        let mut running = self.start(&all);
        let line = running.line();
        let announced: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("unexpected line {line:?}"));
        (running, announced["listening"].as_str().unwrap().to_owned())
    }
}

/// What a server answers to its operator, by the token in its data folder.
impl DataDir {
    pub fn get(&self, url: &str) -> (u16, String) {
        request("GET", url, Some(&self.operator_token())).unwrap()
    }

    /// The same for a POST without a body.
    pub fn post(&self, url: &str) -> (u16, String) {
        request("POST", url, Some(&self.operator_token())).unwrap()
    }

    pub fn operator_token(&self) -> String {
        let text = std::fs::read_to_string(self.data().join("operator.token")).unwrap();
        text.trim().to_owned()
    }
}

/// A process that is killed when it is dropped.
pub struct Running {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Running {
    /// The next line of standard output; empty at its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Ends it in order.
    pub fn stop(&mut self) {
        self.signal("TERM");
        assert_eq!(self.ended().code(), Some(0));
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a server answers to anyone's request, its status and body.
pub fn get(url: &str) -> (u16, String) {
    request("GET", url, None).unwrap()
}

/// The same, where the server may be gone.
pub fn try_get(url: &str) -> std::io::Result<(u16, String)> {
    request("GET", url, None)
}

fn request(method: &str, url: &str, token: Option<&str>) -> std::io::Result<(u16, String)> {
    let (host, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = std::net::TcpStream::connect(host)?;
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    let request = format!("{method} /{path} HTTP/1.0\r\nHost: {host}\r\n{token}\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let cut = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Ok((status, body.to_owned()))
}

pub fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}")))
        .collect()
}

/// Asks until it is so.
///
/// # Panics
/// If it is not so after three minutes. Only a failing test waits that long, even on a busy machine.
pub fn wait_for(what: &str, is_so: impl FnMut() -> bool) {
    assert!(soon(is_so), "waited three minutes: {what}");
}

/// Asks until it is so, for three minutes.
pub fn soon(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(180);
    while Instant::now() < deadline {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}
