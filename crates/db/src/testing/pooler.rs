use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;
use std::{env, fs, thread};

use super::cluster::{
    Account, ClusterError, POLL, START_TIMEOUT, SUPERUSER, can_connect, keep, output,
};
use super::url::{UrlParts, parts};

/// A PgBouncer of this process before a PostgreSQL server, on a free loopback port. Each
/// transaction may get another server connection, which knows no prepared statements. It ends like
/// a [`super::Cluster`].
#[derive(Debug)]
pub struct Pooler {
    url: String,
    keeper: Child,
}

impl Pooler {
    /// Starts a PgBouncer before the server of `url`, with `connections` server connections for
    /// each database. It keeps no prepared statements.
    ///
    /// # Errors
    /// [`ClusterError::NotInstalled`] if PgBouncer is missing; another [`ClusterError`] if it does
    /// not start.
    pub fn start(url: &str, connections: usize) -> Result<Pooler, ClusterError> {
        let program = find_program().ok_or(ClusterError::NotInstalled)?;
        let keeps = keeps_statements(&program)?.then_some(0);
        Pooler::start_program(&program, url, connections, keeps)
    }

    /// The same, with a PgBouncer that keeps `statements` prepared statements. `None` if the
    /// installed version is older than 1.21, which cannot keep them.
    ///
    /// # Errors
    /// The same as those of [`Pooler::start`].
    pub fn start_keeping(
        url: &str,
        connections: usize,
        statements: usize,
    ) -> Result<Option<Pooler>, ClusterError> {
        let program = find_program().ok_or(ClusterError::NotInstalled)?;
        match keeps_statements(&program)? {
            true => Pooler::start_program(&program, url, connections, Some(statements)).map(Some),
            false => Ok(None),
        }
    }

    fn start_program(
        program: &Path,
        url: &str,
        connections: usize,
        statements: Option<usize>,
    ) -> Result<Pooler, ClusterError> {
        let folder = tempfile::Builder::new()
            .prefix("driftline-pgbouncer-")
            .tempdir()?;
        let account = Account::for_owner_of(folder.path())?;
        let mut tries = 0;
        loop {
            tries += 1;
            match Pooler::start_in(
                program,
                folder.path(),
                &account,
                url,
                connections,
                statements,
            ) {
                Ok(pooler) => {
                    let _ = folder.keep();
                    return Ok(pooler);
                }
                // Another program may have taken the port in between.
                Err(_) if tries < 5 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The URL of the same database, through the PgBouncer.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn start_in(
        program: &Path,
        folder: &Path,
        account: &Account,
        url: &str,
        connections: usize,
        statements: Option<usize>,
    ) -> Result<Pooler, ClusterError> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let parts = parts(url);
        let settings = format!(
            "[databases]\n* = {}\n\
             [pgbouncer]\n{}listen_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n\
             unix_socket_dir =\npool_mode = transaction\nmax_client_conn = 1000\n\
             default_pool_size = {connections}\n{}",
            server(&parts),
            encryption(&parts),
            statements.map_or_else(String::new, |most| format!(
                "max_prepared_statements = {most}\n"
            ))
        );
        let file = folder.join("pgbouncer.ini");
        account.keep(&file, &settings)?;
        let mut line = account.command(program);
        line.push(file.into());
        let mut pooler = Pooler {
            url: format!(
                "postgres://{SUPERUSER}@127.0.0.1:{port}/{}",
                parts.database()
            ),
            keeper: keep(folder, line, "TERM")?,
        };
        pooler.wait_until_ready(folder)?;
        // Only now may dropping it remove the folder, because a second attempt would need it.
        fs::write(folder.join("ready"), "")?;
        Ok(pooler)
    }

    fn wait_until_ready(&mut self, folder: &Path) -> Result<(), ClusterError> {
        let deadline = Instant::now() + START_TIMEOUT;
        while !can_connect(&self.url) {
            if self.keeper.try_wait()?.is_some() || Instant::now() > deadline {
                let output = fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(ClusterError::Failed {
                    program: "pgbouncer".into(),
                    output,
                });
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The server and the user of each database, for all clients.
fn server(parts: &UrlParts<'_>) -> String {
    let (host, port) = parts.host_and_port();
    let (user, password) = parts.user();
    let password = password.map(|password| format!(" password={}", quoted(&password)));
    format!(
        "host={host} port={port} user={}{}",
        quoted(&user),
        password.unwrap_or_default()
    )
}

/// The encryption of its connection to the server, the same as for a client of the URL.
fn encryption(parts: &UrlParts<'_>) -> String {
    let mode = parts.parameter("sslmode").unwrap_or("prefer");
    let root = parts.parameter("sslrootcert");
    let root = root.map(|file| format!("server_tls_ca_file = {file}\n"));
    format!("server_tls_sslmode = {mode}\n{}", root.unwrap_or_default())
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// True if this version keeps statements by default, which is so since 1.21.
fn keeps_statements(program: &Path) -> Result<bool, ClusterError> {
    // `PgBouncer 1.18.0`, and the versions of libraries.
    let text = output(Command::new(program).arg("--version"), "pgbouncer")?;
    let version = text.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    Ok((numbers.next().flatten(), numbers.next().flatten()) >= (Some(1), Some(21)))
}

fn find_program() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    // Debian's folder, which only root has on its path.
    folders.push("/usr/sbin".into());
    let programs = folders.into_iter().map(|folder| folder.join("pgbouncer"));
    programs.into_iter().find(|program| program.is_file())
}
