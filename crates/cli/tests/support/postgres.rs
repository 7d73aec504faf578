//! A PostgreSQL cluster that really goes away and comes back.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of this"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use driftline_db::testing::Cluster;
use driftline_store::{SecretUrl, Store, Target};

use super::wait_for;

/// A cluster whose server can be stopped and started again on the same data and port.
pub struct Outage {
    /// Ends by itself when its server is first stopped; the folder is ours from then on.
    cluster: Cluster,
    folder: PathBuf,
    /// The server's command line, with the account that it runs as.
    server: Vec<String>,
    restarted: Option<Child>,
}

impl Outage {
    pub fn start() -> Self {
        let cluster = Cluster::start().unwrap_or_else(|error| panic!("{error}"));
        let data = data_directory(cluster.url());
        let folder = data.parent().unwrap().to_owned();
        let process = format!("/proc/{}", postmaster(&data).unwrap());
        let line = fs::read_to_string(format!("{process}/cmdline")).unwrap();
        let status = fs::read_to_string(format!("{process}/status")).unwrap();
        let id = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key));
            line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
        };
        let mut server = vec!["setpriv".to_owned()];
        // PostgreSQL refuses to run as root, and the cluster found another account then.
        if id("Uid:") != own_user() {
            server.push(format!("--reuid={}", id("Uid:")));
            server.push(format!("--regid={}", id("Gid:")));
            server.push("--clear-groups".to_owned());
        }
        // Should the test be killed, its cluster ends with it.
        server.extend(["--pdeathsig=QUIT".to_owned(), "--".to_owned()]);
        server.extend(line.split_terminator('\0').map(str::to_owned));
        Self {
            cluster,
            folder,
            server,
            restarted: None,
        }
    }

    pub fn url(&self) -> &str {
        self.cluster.url()
    }

    /// Stops the server at once, as a crash would. All connections break.
    pub fn stop(&mut self) {
        // Without this mark the cluster's keeper leaves the folder.
        let _ = fs::remove_file(self.folder.join("ready"));
        let data = self.folder.join("data");
        signal("QUIT", &[postmaster(&data).unwrap()]);
        match &mut self.restarted {
            Some(server) => drop(server.wait()),
            None => wait_for("the server ends", || postmaster(&data).is_none()),
        }
        self.restarted = None;
    }

    /// Starts it again and waits until it takes connections.
    pub fn start_again(&mut self) {
        let (program, rest) = self.server.split_first().unwrap();
        let server = Command::new(program)
            .args(rest)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let server = self.restarted.insert(server.unwrap());
        let (file, id) = (
            self.folder.join("data/postmaster.pid"),
            server.id().to_string(),
        );
        wait_for("the server is back", || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.lines().next() == Some(&*id) && text.contains("ready")
        });
    }

    /// Lets every process of the server stand still: connections stay open and nothing answers.
    pub fn freeze(&self) {
        signal("STOP", &self.processes());
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        signal("CONT", &self.processes());
    }

    fn processes(&self) -> Vec<u32> {
        let postmaster = postmaster(&self.folder.join("data")).unwrap();
        let mut all = vec![postmaster];
        for entry in fs::read_dir("/proc").unwrap().flatten() {
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
            // A test may have failed while it was frozen.
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

fn data_directory(url: &str) -> PathBuf {
    let target = Target::Postgres {
        url: SecretUrl::new(url),
        schema: Some("probe".into()),
    };
    let asked = std::thread::spawn(move || {
        let store = Store::open(target).unwrap();
        let asked = store.read_blocking(|tx| {
            let asked = tx.query_one("show data_directory", &[], |row| row.text(0));
            asked.map_err(driftline_store::StoreError::from)
        });
        store.close_blocking();
        asked.unwrap()
    });
    asked.join().unwrap().into()
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
    let output = Command::new("id").arg("-u").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn signal(name: &str, processes: &[u32]) {
    // One may have ended since it was found.
    let _ = Command::new("kill")
        .arg(format!("-{name}"))
        .args(processes.iter().map(u32::to_string))
        .stderr(Stdio::null())
        .status()
        .unwrap();
}
