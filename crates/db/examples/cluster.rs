//! A throw-away PostgreSQL cluster for several programs: prints its URL, and stops the cluster when
//! standard input ends.
//!
//! With a server named by `DRIFTLINE_TEST_POSTGRES_URL` it checks that one, prints a line, and drops what
//! the run of `DRIFTLINE_TEST_RUN` has made there when standard input ends.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io;
use std::process::ExitCode;

use driftline_db::testing::{Cluster, ClusterError, NamedServer, NamedServerError};

fn main() -> ExitCode {
    let done = match NamedServer::of_environment() {
        Some(server) => use_named(server),
        None => keep_cluster().map_err(|error| error.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn keep_cluster() -> Result<(), ClusterError> {
    let cluster = Cluster::start()?;
    println!("{}", cluster.url());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

fn use_named(server: Result<NamedServer, NamedServerError>) -> Result<(), String> {
    let server = server.map_err(|error| error.to_string())?;
    println!("ready");
    let waited = io::copy(&mut io::stdin(), &mut io::sink());
    waited.map_err(|error| error.to_string())?;
    let dropped = server.drop_all();
    let dropped =
        dropped.map_err(|error| format!("what the tests made stays on the server: {error}"))?;
    eprintln!(
        "dropped {} schemas and {} databases of this run",
        dropped.schemas, dropped.databases
    );
    match dropped.left.is_empty() {
        true => Ok(()),
        false => Err(format!("not dropped: {}", dropped.left.join("; "))),
    }
}
