//! The `driftline` binary that mirrors the server.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::server::{output, signal};
use super::timelines::Timeline;
use crate::error::TaskError;
use crate::workspace::start;

/// The binary with its data folder, or its database.
pub(super) struct Mirror {
    binary: PathBuf,
    folder: PathBuf,
    database_url: Option<String>,
    running: Option<Child>,
    /// Where it answers, `127.0.0.1:PORT`, while it runs.
    pub(super) address: String,
}

impl Mirror {
    /// A new mirror in an empty folder.
    pub(super) fn new(binary: &Path, folder: &Path, database_url: Option<String>) -> Mirror {
        Mirror {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            database_url,
            running: None,
            address: String::new(),
        }
    }

    /// Adds a source for the timeline of the server at `url`, with all its history.
    pub(super) fn add(
        &self,
        url: &str,
        of: &Timeline,
        token: &Path,
        has_default_ladder: bool,
    ) -> Result<(), TaskError> {
        let mut add = self.command(&["source", "add", url, "--allow-private"]);
        add.args(["--name", &of.name, "--timeline", &of.timeline])
            .args(["--backfill", "all"]);
        if !has_default_ladder {
            // It ends within a trial's time.
            add.args(["--rung", "90s/10s"]);
        }
        if of.with_token {
            add.arg("--token-file").arg(token);
        }
        output(&mut add).map(drop)
    }

    /// Has stored posts refreshed by that token.
    pub(super) fn add_credential(&self, url: &str, token: &Path) -> Result<(), TaskError> {
        let mut add = self.command(&["credential", "add", url]);
        output(add.arg("--token-file").arg(token)).map(drop)
    }

    /// Starts `driftline serve` and waits until it listens.
    pub(super) fn start(&mut self) -> Result<(), TaskError> {
        let log = self.folder.join("driftline.log");
        let failed = |error| TaskError::Program("driftline serve".to_owned(), error);
        let log = File::options().create(true).append(true).open(log);
        let mut serve = self.command(&["serve", "--listen", "127.0.0.1:0", "--allow-private"]);
        let (child, line) = start(serve.arg("--json").stderr(log.map_err(failed)?))?;
        self.running = Some(child);
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let url = said["listening"].as_str().unwrap_or_default();
        let Some(address) = url.strip_prefix("http://") else {
            let folder = self.folder.display();
            let text = format!("`driftline serve` does not listen: see {folder}");
            return Err(TaskError::message(text));
        };
        address.clone_into(&mut self.address);
        Ok(())
    }

    /// Ends it with a signal.
    pub(super) fn end(&mut self, with: &str) {
        if let Some(mut child) = self.running.take() {
            signal(with, &child.id().to_string());
            let _ = child.wait();
        }
    }

    /// The one JSON value that a command prints.
    pub(super) fn json(&self, arguments: &[&str]) -> Result<Value, TaskError> {
        let printed = output(self.command(arguments).arg("--json"))?;
        serde_json::from_str(&printed).map_err(|error| {
            let command = arguments.join(" ");
            TaskError::message(format!("driftline {command}: {error}: {printed}"))
        })
    }

    /// What is stored of a source, an object a post.
    pub(super) fn export(&self, name: &str) -> Result<Vec<Value>, TaskError> {
        let printed = output(&mut self.command(&["export", name]))?;
        let failed = |error| TaskError::message(format!("the export of {name}: {error}"));
        let rows = printed.lines().map(serde_json::from_str);
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    /// The binary, with nobody's settings.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("DRIFTLINE_") {
                command.env_remove(&name);
            }
        }
        command
            .current_dir(&self.folder)
            .env("XDG_CONFIG_HOME", self.folder.join("config"))
            .arg("--data")
            .arg(self.folder.join("data"))
            .args(arguments)
            .stdin(Stdio::null());
        if let Some(url) = &self.database_url {
            command.env("DRIFTLINE_STORE__DATABASE_URL", url);
        }
        command
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.end("KILL");
    }
}
