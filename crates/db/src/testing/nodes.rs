//! Databases on every node of a distributed PostgreSQL (Citus).

use std::env;

use super::url::parts;
use crate::error::DbError;
use crate::options::SecretUrl;
use crate::postgres::{Server, Session, SessionPurpose};
use crate::tx::Tx;

/// Whether the tests' stores are to be distributed: their server is the coordinator of a cluster.
pub fn is_distributed() -> bool {
    env::var_os(TEST_DISTRIBUTED).is_some()
}

/// Set if the tests' stores are to be distributed.
pub const TEST_DISTRIBUTED: &str = "DRIFTLINE_TEST_DISTRIBUTED";

/// Makes a database of that name on each node of the cluster whose coordinator has `url`, with the nodes
/// registered in it as they are in the database of `url`.
pub(super) fn create_on_all(url: &str, name: &str) -> Result<(), DbError> {
    let mut coordinator = connect(url)?;
    let nodes = nodes(&mut coordinator)?;
    for node in &nodes {
        let address = format!("{}:{}", node.host, node.port);
        let of_node = parts(url).with_address(address);
        connect(&of_node)?.script(&format!("create database {name}"))?;
        connect(&parts(&of_node).with_database(name))?.script("create extension citus")?;
    }
    let mut new = connect(&parts(url).with_database(name))?;
    for Node {
        host,
        port,
        is_coordinator,
        has_shards,
    } in &nodes
    {
        let register = match is_coordinator {
            true => format!("select citus_set_coordinator_host('{host}', {port})"),
            false => format!("select citus_add_node('{host}', {port})"),
        };
        new.script(&register)?;
        new.script(&format!(
            "select citus_set_node_property('{host}', {port}, 'shouldhaveshards', {has_shards})"
        ))?;
    }
    Ok(())
}

struct Node {
    host: String,
    port: i64,
    is_coordinator: bool,
    has_shards: bool,
}

/// The coordinator first.
fn nodes(session: &mut Session) -> Result<Vec<Node>, DbError> {
    session.begin("begin");
    let nodes = Tx::postgres(session).query(
        "select nodename, nodeport::bigint as port, groupid = 0 as is_coordinator, shouldhaveshards
         from pg_dist_node where isactive order by groupid",
        &[],
        |row| {
            Ok(Node {
                host: row.text("nodename")?,
                port: row.i64("port")?,
                is_coordinator: row.bool("is_coordinator")?,
                has_shards: row.bool("shouldhaveshards")?,
            })
        },
    );
    session.roll_back();
    nodes
}

fn connect(url: &str) -> Result<Session, DbError> {
    Server::new(&SecretUrl::new(url), None)?.connect(SessionPurpose::Read)
}
