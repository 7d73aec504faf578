//! A store on a distributed PostgreSQL (Citus): the placement of each table's rows, and the
//! conversion of a store on one server to a distributed one. `docs/distribution.md` has the
//! reasons.

use driftline_db::{Column, DbError, Root, Tx};

use crate::{error::StoreError, local_ids, open::store::Store};

/// The placement of a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// With their instance, which is in this column. All rows of one instance are on one node.
    WithInstance(&'static str),
    /// On every node. The commit of a page does not write them.
    Everywhere,
    /// On the coordinator.
    Coordinator,
}

use Placement::{Coordinator, Everywhere, WithInstance};

/// The tables. Tables with which others are placed come first.
pub const PLACEMENTS: [(&str, Placement); 68] = [
    ("instance", WithInstance("id")),
    ("directory", Everywhere),
    ("source", WithInstance("instance_id")),
    ("library", WithInstance("instance_id")),
    ("library_opening", WithInstance("instance_id")),
    ("gap", WithInstance("instance_id")),
    ("quarantine", WithInstance("instance_id")),
    ("entry", WithInstance("instance_id")),
    ("entry_alias", WithInstance("instance_id")),
    ("upstream_post", WithInstance("instance_id")),
    ("post", WithInstance("instance_id")),
    ("object_uri", WithInstance("instance_id")),
    ("scoped_content", WithInstance("instance_id")),
    ("post_history", WithInstance("instance_id")),
    ("post_text", WithInstance("instance_id")),
    ("index_pending", WithInstance("instance_id")),
    ("edited_post", WithInstance("instance_id")),
    ("count_history", WithInstance("instance_id")),
    ("account", WithInstance("instance_id")),
    ("account_profile", WithInstance("instance_id")),
    ("nickname_term", WithInstance("instance_id")),
    ("freshness", WithInstance("instance_id")),
    ("schedule", WithInstance("instance_id")),
    ("claim_lease", WithInstance("instance_id")),
    ("outbox", WithInstance("instance_id")),
    ("pending_lookup", WithInstance("instance_id")),
    ("indexed_place", WithInstance("instance_id")),
    ("learned_state", WithInstance("instance_id")),
    ("credential", WithInstance("instance_id")),
    ("quota", WithInstance("instance_id")),
    ("look_up_ability", WithInstance("instance_id")),
    ("instance_info", WithInstance("instance_id")),
    ("fetched_account", WithInstance("instance_id")),
    ("store_identity", Coordinator),
    ("server_keys", Coordinator),
    ("local_clock", Coordinator),
    ("reservation", Coordinator),
    ("distribution", Coordinator),
    ("opening", Coordinator),
    ("node_lease", Coordinator),
    ("member", Coordinator),
    ("sharing", Coordinator),
    ("index_state", Coordinator),
    ("local_account", Coordinator),
    ("profile", Coordinator),
    ("pending_account", Coordinator),
    ("relation", Coordinator),
    ("mute", Coordinator),
    ("account_note", Coordinator),
    ("notification", Coordinator),
    ("home_source", Coordinator),
    ("library_object", Coordinator),
    ("marked_post", Coordinator),
    ("list", Coordinator),
    ("list_member", Coordinator),
    ("list_entry", Coordinator),
    ("marker", Coordinator),
    ("filter", Coordinator),
    ("filter_keyword", Coordinator),
    ("filter_post", Coordinator),
    ("note", Coordinator),
    ("draft", Coordinator),
    ("sync_device", Coordinator),
    ("app", Coordinator),
    ("authorization_code", Coordinator),
    ("access_token", Coordinator),
    ("token_family", Coordinator),
    ("web_session", Coordinator),
];

pub use super::distribution_state::{State, state};

/// The reason why a store cannot be distributed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DistributeError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store is not on PostgreSQL.
    #[error("a SQLite file cannot be distributed: only a store on PostgreSQL can")]
    NotPostgres,
    /// The server is not a Citus cluster, or not configured as one.
    #[error("{0}")]
    Cluster(String),
    /// Processes use the store.
    #[error(
        "the store is in use by {0} running process(es): stop them first (`driftline node list` shows them)"
    )]
    InUse(i64),
    /// A table would have other rows than before. It is left unchanged.
    #[error("{table} has {before} rows and would have {after}")]
    RowsDiffer {
        /// The table.
        table: &'static str,
        /// The number of its rows before.
        before: i64,
        /// The number of its rows now.
        after: i64,
    },
}

impl From<DbError> for DistributeError {
    fn from(error: DbError) -> DistributeError {
        DistributeError::Store(error.into())
    }
}

/// A completed step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distributed {
    /// The table.
    pub table: &'static str,
    /// The number of its rows.
    pub rows: i64,
    /// The position of the table among all tables to be distributed, from 1.
    pub number: usize,
    /// The number of tables to be distributed.
    pub of: usize,
}

/// Distributes a store over the nodes of its Citus cluster, in `shards` shards. Calls `done` for
/// each table. Tables that an earlier attempt has distributed stay, so that it can be called again
/// after an interruption. No other process may use the store. Blocks.
///
/// # Errors
/// [`DistributeError`] with the reason. The completed steps stay.
pub fn distribute(
    store: &Store,
    shards: u32,
    mut done: impl FnMut(Distributed),
) -> Result<(), DistributeError> {
    if store.dialect() != driftline_db::Dialect::Postgres {
        return Err(DistributeError::NotPostgres);
    }
    if store.read_blocking(state)? == State::Distributed {
        return Ok(());
    }
    check_cluster(store)?;
    check_unused(store)?;
    set(store, State::Begun)?;
    // A process that started meanwhile did not see that it has begun.
    if let Err(error) = check_unused(store) {
        let begun = store.read_blocking(distributed_tables)?;
        if begun.is_empty() {
            set(store, State::Single)?;
        }
        return Err(error);
    }
    let moved = PLACEMENTS.iter().filter(|(_, to)| *to != Coordinator);
    let of = moved.clone().count();
    for (number, (table, placement)) in (1..).zip(moved) {
        let (table, placement) = (*table, *placement);
        if !store
            .read_blocking(distributed_tables)?
            .iter()
            .any(|known| known == table)
        {
            let job = move |tx: &mut Tx<'_>| place(tx, table, placement, shards);
            store.write_blocking(Root::none(), job)?;
        }
        // The rows of one server stay on the coordinator's disk until then.
        store.write_blocking(Root::none(), move |tx| {
            let truncate =
                "select truncate_local_data_after_distributing_table($1::text::regclass)";
            tx.query(truncate, &[&table], |_| Ok(()))?;
            Ok::<_, DbError>(())
        })?;
        let rows = store.read_blocking(move |tx| count(tx, table))?;
        done(Distributed {
            table,
            rows,
            number,
            of,
        });
    }
    set(store, State::Distributed)?;
    store.set_distributed();
    Ok(())
}

/// Marks the store as distributed although one server has all of it, unless it is already.
#[cfg(feature = "testing")]
pub(crate) fn say_distributed(store: &Store) -> Result<(), DbError> {
    if store.is_distributed() {
        return Ok(());
    }
    set(store, State::Begun)?;
    store.write_blocking(Root::none(), |tx| tx.execute(ENTRY_KEYS, &[]))?;
    set(store, State::Distributed)?;
    store.set_distributed();
    Ok(())
}

/// `schema.sql` explains why these keys lack the instance until then.
const ENTRY_KEYS: &str = "alter table entry
     drop constraint entry_pkey, add primary key (source_id, id, instance_id),
     drop constraint entry_source_id_position_key, add unique (source_id, position, instance_id),
     drop constraint entry_source_id_usn_key, add unique (source_id, usn, instance_id)";

fn set(store: &Store, state: State) -> Result<(), DbError> {
    store.write_blocking(Root::none(), move |tx| {
        let set = "update distribution set state = $1 where one = 1 and state <> 'distributed'";
        tx.execute(set, &[&state.name()])?;
        // A process that opened the store before takes no ID from here on.
        let is_single = tx.query_opt(
            "select 1 from pg_attribute
             where attrelid = 'local_clock'::regclass and attname = $1 and not attisdropped",
            &[&local_ids::LAST],
            |_| Ok(()),
        )?;
        let (from, to) = (local_ids::LAST, local_ids::LAST_RESERVED);
        let rename = match (is_single.is_some(), state) {
            (true, State::Begun) => format!("alter table local_clock rename column {from} to {to}"),
            (false, State::Single) => {
                format!("alter table local_clock rename column {to} to {from}")
            }
            _ => return Ok(()),
        };
        tx.execute(&rename, &[]).map(drop)
    })
}

/// Places a table's rows, all or none of them.
fn place(
    tx: &mut Tx<'_>,
    table: &'static str,
    placement: Placement,
    shards: u32,
) -> Result<(), DistributeError> {
    tx.execute(&format!("lock table {table} in access exclusive mode"), &[])?;
    let before = count(tx, table)?;
    if table == "entry" {
        tx.execute(ENTRY_KEYS, &[])?;
    }
    match placement {
        WithInstance(column) if table == "instance" => {
            let sql = format!(
                "select create_distributed_table($1::text::regclass, $2, shard_count => {shards},
                     colocate_with => 'none')"
            );
            tx.query(&sql, &[&table, &column], |_| Ok(()))?;
        }
        WithInstance(column) => {
            let sql = "select create_distributed_table($1::text::regclass, $2,
                 colocate_with => 'instance')";
            tx.query(sql, &[&table, &column], |_| Ok(()))?;
        }
        Everywhere => {
            let sql = "select create_reference_table($1::text::regclass)";
            tx.query(sql, &[&table], |_| Ok(()))?;
        }
        Coordinator => {}
    }
    match count(tx, table)? {
        after if after == before => Ok(()),
        after => Err(DistributeError::RowsDiffer {
            table,
            before,
            after,
        }),
    }
}

fn count(tx: &mut Tx<'_>, table: &str) -> Result<i64, DbError> {
    let sql = format!("select count(*) as rows from {table}");
    tx.query_one(&sql, &[], |row| row.i64("rows"))
}

fn distributed_tables(tx: &mut Tx<'_>) -> Result<Vec<String>, DbError> {
    let tables = Column::text(PLACEMENTS.iter().map(|(table, _)| *table));
    tx.query(
        "select relname::text as name from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
         where c.relnamespace = current_schema()::regnamespace and relname::text = any($1)",
        &[&tables],
        |row| row.text("name"),
    )
}

fn check_unused(store: &Store) -> Result<(), DistributeError> {
    let live = store.read_blocking(|tx| crate::sharing::change::current(tx).map(|now| now.live))?;
    match live {
        0 => Ok(()),
        live => Err(DistributeError::InUse(live)),
    }
}

/// The required conditions, each with the remedy if it is not met.
const CONDITIONS: [(&str, &str); 4] = [
    (
        "select exists (select 1 from pg_extension where extname = 'citus') as holds",
        "the server has no Citus in this database: install it, preload it, and run `create extension citus` on each node",
    ),
    (
        "select exists (select 1 from pg_dist_node where groupid = 0) as holds",
        "the coordinator does not know its own address: run `select citus_set_coordinator_host(HOST, PORT)` there",
    ),
    (
        "select exists (select 1 from pg_dist_node where groupid <> 0 and isactive
             and noderole = 'primary' and shouldhaveshards) as holds",
        "the cluster has no active worker: add them with `select citus_add_node(HOST, PORT)`",
    ),
    (
        "select not exists (select 1 from pg_dist_node where groupid = 0 and shouldhaveshards) as holds",
        "the coordinator would hold shards beside the workers: run `select citus_set_node_property(HOST, PORT, 'shouldhaveshards', false)` with its address",
    ),
];

fn check_cluster(store: &Store) -> Result<(), DistributeError> {
    for (sql, advice) in CONDITIONS {
        let holds = store
            .read_blocking(move |tx| tx.query_one(sql, &[], |row| row.bool("holds")))
            .map_err(DistributeError::from)?;
        if !holds {
            return Err(DistributeError::Cluster(advice.to_owned()));
        }
    }
    Ok(())
}
