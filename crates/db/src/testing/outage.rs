//! A PostgreSQL cluster that really stops and starts again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use super::cluster::{Cluster, POLL, START_TIMEOUT};
use super::fresh::Fresh;

/// A cluster whose server can be stopped and started again on the same data and port.
#[derive(Debug)]
pub struct Outage {
    /// Ends by itself when its server is first stopped. The folder then belongs to this value.
    cluster: Cluster,
    folder: PathBuf,
    /// The server's command line, with the account that it runs as.
    server: Vec<String>,
    restarted: Option<Child>,
}

impl Outage {
    /// Starts the cluster.
    ///
    /// # Panics
    /// If PostgreSQL cannot be started. The message has the reason.
    pub fn start() -> Self {
        let cluster = Cluster::start().unwrap_or_else(|error| panic!("{error}"));
        let folder = cluster.folder().to_owned();
        let data = folder.join("data");
        let process = format!("/proc/{}", postmaster(&data).expect(EXPECTED));
        let line = fs::read_to_string(format!("{process}/cmdline")).expect(EXPECTED);
        let status = fs::read_to_string(format!("{process}/status")).expect(EXPECTED);
        let id = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key));
            line.expect(EXPECTED)
                .split_whitespace()
                .nth(1)
                .expect(EXPECTED)
                .to_owned()
        };
        let mut server = vec!["setpriv".to_owned()];
        // PostgreSQL rejects root, so the cluster has found another account.
        if id("Uid:") != own_user() {
            server.push(format!("--reuid={}", id("Uid:")));
            server.push(format!("--regid={}", id("Gid:")));
            server.push("--clear-groups".to_owned());
        }
        // If the test is killed, its cluster ends with it.
        server.extend(["--pdeathsig=QUIT".to_owned(), "--".to_owned()]);
        server.extend(line.split_terminator('\0').map(str::to_owned));
        Self {
            cluster,
            folder,
            server,
            restarted: None,
        }
    }

    /// The same as [`Cluster::url`]. The server has it again after a restart.
    pub fn url(&self) -> &str {
        self.cluster.url()
    }

    /// A new schema in the cluster.
    pub fn fresh(&self) -> Fresh {
        Fresh::in_cluster(self.url())
    }

    /// Stops the server at once, like a crash. All connections break.
    ///
    /// # Panics
    /// If the server does not end.
    pub fn stop(&mut self) {
        // Without this mark the cluster's keeper leaves the folder.
        let _ = fs::remove_file(self.folder.join("ready"));
        let data = self.folder.join("data");
        signal("QUIT", &[postmaster(&data).expect(EXPECTED)]);
        match &mut self.restarted {
            Some(server) => drop(server.wait()),
            None => wait_for("the server ends", || postmaster(&data).is_none()),
        }
        self.restarted = None;
    }

    /// Starts the server again and waits until it accepts connections.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn start_again(&mut self) {
        let (program, rest) = self.server.split_first().expect(EXPECTED);
        let server = Command::new(program)
            .args(rest)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let server = self.restarted.insert(server.expect(EXPECTED));
        let (file, id) = (
            self.folder.join("data/postmaster.pid"),
            server.id().to_string(),
        );
        wait_for("the server is back", || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.lines().next() == Some(&*id) && text.contains("ready")
        });
    }

    /// Stops every process of the server. Connections stay open and nothing answers.
    ///
    /// # Panics
    /// If a signal cannot be sent.
    pub fn freeze(&self) {
        signal("STOP", &self.processes());
    }

    /// Lets the processes continue.
    ///
    /// # Panics
    /// If a signal cannot be sent.
    pub fn thaw(&self) {
        signal("CONT", &self.processes());
    }

    fn processes(&self) -> Vec<u32> {
        let postmaster = postmaster(&self.folder.join("data")).expect(EXPECTED);
        let mut all = vec![postmaster];
        for entry in fs::read_dir("/proc").expect(EXPECTED).flatten() {
            let Some(id) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
            if parent.is_some_and(|parent| parent.trim() == postmaster.to_string()) {
                all.push(id);
            }
        }
        all
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        if postmaster(&self.folder.join("data")).is_some() {
            // A test may have failed while the server was frozen.
            self.thaw();
        }
        let Some(mut server) = self.restarted.take() else {
            return;
        };
        if let Some(postmaster) = postmaster(&self.folder.join("data")) {
            signal("QUIT", &[postmaster]);
        }
        let _ = server.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn postmaster(data: &Path) -> Option<u32> {
    let file = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let id = file.lines().next()?.parse().ok()?;
    // A server that was stopped at once leaves its file behind.
    let is_there = fs::read_to_string(format!("/proc/{id}/status"))
        .is_ok_and(|status| !status.contains("State:\tZ"));
    is_there.then_some(id)
}

fn own_user() -> String {
    let output = Command::new("id").arg("-u").output().expect(EXPECTED);
    String::from_utf8(output.stdout)
        .expect(EXPECTED)
        .trim()
        .to_owned()
}

fn signal(name: &str, processes: &[u32]) {
    // A process may have ended since it was found.
    let _ = Command::new("kill")
        .arg(format!("-{name}"))
        .args(processes.iter().map(u32::to_string))
        .stderr(Stdio::null())
        .status()
        .expect(EXPECTED);
}

pub(super) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + START_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited for: {what}");
        thread::sleep(POLL);
    }
}

const EXPECTED: &str = "a server of PostgreSQL that runs, and `kill` and `setpriv`";
