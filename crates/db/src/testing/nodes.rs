//! Databases on every node of a distributed PostgreSQL (Citus).

use std::env;

use super::url::parts;
use crate::error::DbError;
use crate::options::SecretUrl;
use crate::postgres::{Server, Session, SessionPurpose};
use crate::tx::Tx;

/// True if the tests' stores must be distributed, because their server is the coordinator of a
/// cluster.
pub fn is_distributed() -> bool {
    env::var_os(TEST_DISTRIBUTED).is_some()
}

/// Set if the tests' stores must be distributed.
pub const TEST_DISTRIBUTED: &str = "DRIFTLINE_TEST_DISTRIBUTED";

/// Makes a database called `name` on each node of the cluster whose coordinator has `url`. The
/// nodes are registered in it as in the database of `url`.
pub(super) fn create_on_all(url: &str, name: &str) -> Result<(), DbError> {
    let nodes = nodes(&mut connect(url)?)?;
    for node in &nodes {
        let of_node = node.url(url);
        connect(&of_node)?.script(&format!("create database {name}"))?;
        connect(&parts(&of_node).with_database(name))?.script("create extension citus")?;
    }
    let mut new = connect(&parts(url).with_database(name))?;
    for RegisteredNode {
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

/// The address of a node's database of the same name.
pub(super) struct Address {
    pub(super) name: String,
    pub(super) url: String,
}

/// The addresses of the nodes of the cluster whose coordinator has `url`, the coordinator first.
pub(super) fn addresses(url: &str) -> Result<Vec<Address>, DbError> {
    let nodes = nodes(&mut connect(url)?)?.into_iter();
    let addresses = nodes.map(|node| Address {
        name: node.address(),
        url: node.url(url),
    });
    Ok(addresses.collect())
}

/// The data folder of the server that has `url`.
pub(super) fn data_folder(url: &str) -> Result<String, DbError> {
    ask(url, "select current_setting('data_directory')")
}

/// The text that a query returns on the server of `url`.
pub(super) fn ask(url: &str, query: &str) -> Result<String, DbError> {
    let mut session = connect(url)?;
    session.begin("begin");
    let text = Tx::postgres(&mut session).query_one(query, &[], |row| row.text(0));
    session.roll_back();
    text
}

struct RegisteredNode {
    host: String,
    port: i64,
    is_coordinator: bool,
    has_shards: bool,
}

impl RegisteredNode {
    fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The URL of the node's database with the same name as in `url`.
    fn url(&self, url: &str) -> String {
        parts(url).with_address(self.address())
    }
}

/// The registered nodes, the coordinator first.
fn nodes(session: &mut Session) -> Result<Vec<RegisteredNode>, DbError> {
    session.begin("begin");
    let nodes = Tx::postgres(session).query(
        "select nodename, nodeport::bigint as port, groupid = 0 as is_coordinator, shouldhaveshards
         from pg_dist_node where isactive order by groupid",
        &[],
        |row| {
            Ok(RegisteredNode {
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
