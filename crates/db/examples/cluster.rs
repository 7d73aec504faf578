//! A throw-away PostgreSQL cluster for several programs: prints its URL, and stops the cluster when
//! standard input ends.
#![allow(clippy::print_stdout)]

use std::io;

use driftline_db::testing::{Cluster, ClusterError};

fn main() -> Result<(), ClusterError> {
    let cluster = Cluster::start()?;
    println!("{}", cluster.url());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
