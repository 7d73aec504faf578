use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use tempfile::TempDir;

/// A PostgreSQL cluster of this process, on a free loopback port.
///
/// It is stopped and removed when it is dropped. The same happens if this process ends in another
/// way, or is killed: a small shell between them waits for the end of a pipe.
#[derive(Debug)]
pub struct Cluster {
    url: String,
    folder: PathBuf,
    keeper: Child,
}

/// The reason why no cluster could be started.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// PostgreSQL's programs, or PgBouncer, are not installed on this machine.
    #[error("no programs of PostgreSQL or PgBouncer were found: run `cargo xtask setup`")]
    NotInstalled,

    /// A program could not be run.
    #[error("{program}: {error}")]
    Program {
        /// Its name.
        program: String,
        /// The reason.
        error: io::Error,
    },

    /// A program failed.
    #[error("{program} failed: {output}")]
    Failed {
        /// Its name.
        program: String,
        /// Its output.
        output: String,
    },

    /// The folder could not be prepared.
    #[error("the folder of a server: {0}")]
    Folder(#[from] io::Error),
}

impl Cluster {
    /// Starts a cluster and waits until it takes connections.
    ///
    /// # Errors
    /// [`ClusterError`] if the programs are missing, or the cluster does not start.
    pub fn start() -> Result<Cluster, ClusterError> {
        Cluster::start_as(None, &[])
    }

    /// Starts a cluster with further settings of the form `name=value`.
    ///
    /// # Errors
    /// [`ClusterError`] if the programs are missing, or the cluster does not start.
    pub fn start_with(settings: &[&str]) -> Result<Cluster, ClusterError> {
        Cluster::start_as(None, settings)
    }

    /// Starts a cluster that offers TLS, with the given certificate and key, both PEM.
    ///
    /// # Errors
    /// [`ClusterError`] if the programs are missing, or the cluster does not start.
    pub fn start_encrypted(certificate: &str, key: &str) -> Result<Cluster, ClusterError> {
        Cluster::start_as(Some((certificate, key)), &["ssl=on"])
    }

    fn start_as(
        identity: Option<(&str, &str)>,
        settings: &[&str],
    ) -> Result<Cluster, ClusterError> {
        let programs = find_programs().ok_or(ClusterError::NotInstalled)?;
        let folder = new_folder()?;
        let account = Account::for_owner_of(folder.path())?;
        account.init(&programs, folder.path())?;
        if let Some((certificate, key)) = identity {
            account.keep(&folder.path().join("data/server.crt"), certificate)?;
            account.keep(&folder.path().join("data/server.key"), key)?;
        }
        Cluster::start_on(&programs, folder, &account, settings)
    }

    /// Starts a standby that streams the changes of the server of `url`.
    pub(super) fn start_standby(url: &str) -> Result<Cluster, ClusterError> {
        let programs = find_programs().ok_or(ClusterError::NotInstalled)?;
        let folder = new_folder()?;
        let account = Account::for_owner_of(folder.path())?;
        account.copy(&programs, url, folder.path())?;
        Cluster::start_on(&programs, folder, &account, &[])
    }

    /// Starts a server on the data in a folder.
    fn start_on(
        programs: &Path,
        folder: TempDir,
        account: &Account,
        settings: &[&str],
    ) -> Result<Cluster, ClusterError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match Cluster::start_in(programs, folder.path(), account, settings) {
                // From here on the keeper removes the folder.
                Ok(cluster) => {
                    let _ = folder.keep();
                    return Ok(cluster);
                }
                // Another program may have taken the port in between.
                Err(_) if tries < 5 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The URL of the cluster's `postgres` database, for its superuser, without a password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the server by SIGKILL. Its sessions then end by themselves, and its files are removed.
    pub(super) fn kill(&mut self) -> Result<(), ClusterError> {
        let lock = fs::read_to_string(self.folder.join("data/postmaster.pid"))?;
        let mut lines = lock.lines();
        let pid = lines.next().unwrap_or_default();
        output(Command::new("kill").args(["-KILL", pid]), "kill")?;
        self.keeper.wait()?;
        // A server that ends in order removes its shared memory, whose key and ID the seventh line names.
        let memory = lines.nth(5).unwrap_or_default().split_whitespace().nth(1);
        if let Some(memory) = memory {
            output(Command::new("ipcrm").args(["-m", memory]), "ipcrm")?;
        }
        Ok(())
    }

    /// The folder of its files; its data is in `data`.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn start_in(
        programs: &Path,
        folder: &Path,
        account: &Account,
        settings: &[&str],
    ) -> Result<Cluster, ClusterError> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut server = account.command(&programs.join("postgres"));
        server.push("-D".into());
        server.push(folder.join("data").into());
        for setting in SETTINGS.iter().chain(settings) {
            server.push("-c".into());
            server.push(setting.into());
        }
        server.push("-p".into());
        server.push(port.to_string().into());
        let keeper = keep(folder, server, "QUIT")?;
        let url = format!("postgres://{SUPERUSER}@127.0.0.1:{port}/postgres");
        let mut cluster = Cluster {
            url,
            folder: folder.to_owned(),
            keeper,
        };
        cluster.wait_until_ready(folder)?;
        // Only now may dropping the cluster remove the folder, because a second attempt would need
        // it.
        fs::write(folder.join("ready"), "")?;
        Ok(cluster)
    }

    fn wait_until_ready(&mut self, folder: &Path) -> Result<(), ClusterError> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if says_ready(folder) && can_connect(&self.url) {
                return Ok(());
            }
            if self.keeper.try_wait()?.is_some() || Instant::now() > deadline {
                let output = fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(ClusterError::Failed {
                    program: "postgres".into(),
                    output,
                });
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The operating system's account that runs PostgreSQL, which rejects root.
pub(super) enum Account {
    Own,
    Other(&'static str),
}

impl Account {
    /// The account for the owner of a folder. Root's folders are given to an account without
    /// rights; others stay as they are.
    pub(super) fn for_owner_of(folder: &Path) -> Result<Account, ClusterError> {
        if fs::metadata(folder)?.uid() != 0 {
            return Ok(Account::Own);
        }
        for name in ["postgres", "nobody"] {
            let Ok(user) = id(name, "-u") else { continue };
            chown(folder, Some(user), Some(id(name, "-g")?))?;
            return Ok(Account::Other(name));
        }
        Err(ClusterError::NotInstalled)
    }

    /// A program's command line, as this account. `setpriv` replaces itself by the program, so
    /// signals reach it.
    pub(super) fn command(&self, program: &Path) -> Vec<OsString> {
        let mut line: Vec<OsString> = Vec::new();
        if let Account::Other(name) = self {
            line.push("setpriv".into());
            line.push(format!("--reuid={name}").into());
            line.push(format!("--regid={}", group_of(name)).into());
            line.push("--clear-groups".into());
            line.push("--".into());
        }
        line.push(program.into());
        line
    }

    /// Writes a file that only this account may read.
    pub(super) fn keep(&self, path: &Path, text: &str) -> Result<(), ClusterError> {
        fs::write(path, text)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        if let Account::Other(name) = self {
            chown(path, Some(id(name, "-u")?), Some(id(name, "-g")?))?;
        }
        Ok(())
    }

    fn init(&self, programs: &Path, folder: &Path) -> Result<(), ClusterError> {
        let line = self.command(&programs.join("initdb"));
        let (program, rest) = line.split_first().ok_or(ClusterError::NotInstalled)?;
        // An ICU locale, as most servers have. Text that must sort by bytes must say so.
        let mut command = Command::new(program);
        command
            .args(rest)
            .arg("-D")
            .arg(folder.join("data"))
            .current_dir("/")
            .args([
                "--username",
                SUPERUSER,
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--locale-provider=icu",
                "--icu-locale=en",
                "--no-sync",
            ]);
        output(&mut command, "initdb").map(|_| ())
    }

    /// Copies the data of the server of `url`, for a standby of it.
    fn copy(&self, programs: &Path, url: &str, folder: &Path) -> Result<(), ClusterError> {
        // The folder may have links to some of PostgreSQL's programs only.
        let programs = fs::canonicalize(programs.join("postgres"))?;
        let line = self.command(&programs.with_file_name("pg_basebackup"));
        let (program, rest) = line.split_first().ok_or(ClusterError::NotInstalled)?;
        let mut command = Command::new(program);
        command
            .args(rest)
            .args(["--dbname", url])
            .arg("--pgdata")
            .arg(folder.join("data"))
            .args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf"])
            .current_dir("/")
            // Root's home is closed to the account, and clients look for passwords there.
            .env("HOME", folder);
        output(&mut command, "pg_basebackup").map(|_| ())
    }
}

fn new_folder() -> Result<TempDir, io::Error> {
    tempfile::Builder::new()
        .prefix("driftline-postgres-")
        .tempdir()
}

/// The folder with `initdb` and `postgres`.
pub(super) fn find_programs() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versions.sort_by_key(|folder| version_of(folder));
    folders.extend(versions.into_iter().rev());
    folders
        .into_iter()
        .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

/// The `15` in `/usr/lib/postgresql/15/bin`.
fn version_of(folder: &Path) -> u32 {
    let name = folder
        .parent()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    name.and_then(|name| name.parse().ok()).unwrap_or_default()
}

fn id(name: &str, which: &str) -> Result<u32, ClusterError> {
    let text = output(Command::new("id").args([which, name]), "id")?;
    text.trim().parse().map_err(|_| ClusterError::Failed {
        program: "id".into(),
        output: text,
    })
}

fn group_of(name: &str) -> String {
    id(name, "-g").map_or_else(|_| name.to_owned(), |group| group.to_string())
}

pub(super) fn output(command: &mut Command, program: &str) -> Result<String, ClusterError> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| ClusterError::Program {
            program: program.into(),
            error,
        })?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if status.success() {
        Ok(text(stdout))
    } else {
        Err(ClusterError::Failed {
            program: program.into(),
            output: text(stderr),
        })
    }
}

/// True if the server with its data in the folder accepts connections. Another server may have
/// taken the port in between, and would answer there.
fn says_ready(folder: &Path) -> bool {
    let state = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap_or_default();
    state
        .lines()
        .last()
        .is_some_and(|line| line.trim() == "ready")
}

/// True if a connection succeeds. Tried on a plain thread, because the caller's thread may already
/// drive a runtime.
pub(super) fn can_connect(url: &str) -> bool {
    let url = url.to_owned();
    let tried = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let connected = runtime.block_on(tokio_postgres::connect(&url, tokio_postgres::NoTls));
        Ok::<_, std::io::Error>(connected.is_ok())
    });
    let tried = tried.join().map(|tried| tried.unwrap_or(false));
    tried.unwrap_or(false)
}

/// Starts a server and its [`KEEPER`]. `signal` ends the server at once.
pub(super) fn keep(
    folder: &Path,
    server: Vec<OsString>,
    signal: &str,
) -> Result<Child, ClusterError> {
    // A process group of its own: an interrupt at the terminal ends the test process, whose end
    // then stops the server.
    Command::new("sh")
        .args(["-c", KEEPER, "keeper"])
        .arg(folder)
        .arg(signal)
        .args(server)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| ClusterError::Program {
            program: "sh".into(),
            error,
        })
}

/// Starts the server and lives as long as it, or until the pipe from the test process ends. Then it
/// stops the server at once. `$1` is the folder, `$2` the signal for that, and the rest the
/// server's command line. A folder that was never ready is left to its creator.
const KEEPER: &str = r#"
trap '' INT TERM HUP
folder=$1
signal=$2
shift 2
exec 3<&0
"$@" </dev/null >"$folder/log" 2>&1 3<&- &
server=$!
(cat <&3 >/dev/null; kill -"$signal" "$server") 2>/dev/null &
waiter=$!
wait "$server"
kill "$waiter" 2>/dev/null
if [ -e "$folder/ready" ]; then rm -rf "$folder"; fi
"#;

pub(super) const SUPERUSER: &str = "driftline";
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(60);
pub(super) const POLL: Duration = Duration::from_millis(20);
const SETTINGS: [&str; 7] = [
    // No test outlives a power cut.
    "fsync=off",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=500",
    "deadlock_timeout=100ms",
    "log_min_messages=fatal",
    "shared_buffers=64MB",
];
