//! `migrate`: distributes a store. There is no older schema to migrate from before 0.1.0.

use std::collections::BTreeMap;

use clap::Args;
use driftline_store::distribution::{self, Distributed};
use serde_json::json;

use crate::{config::Config, data_dir::DataDir, error::CliError, output};

/// Says whether the store has this program's schema, or distributes the store.
///
/// Before release 0.1.0 there is one schema: stores of other development builds are refused, and there is
/// nothing to migrate.
#[derive(Debug, Args)]
pub struct Migrate {
    /// Distribute the store over the workers of its Citus cluster, for good; no other process may run.
    ///
    /// What an earlier try has distributed stays, so that it goes on where it was stopped.
    #[arg(long)]
    distribute: bool,
    /// Into how many shards it is distributed: what hangs from one instance lies in one of them, and what
    /// is read of all instances costs by the shard.
    #[arg(long, requires = "distribute", default_value_t = SHARDS,
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    shards: u32,
}

/// Enough for as many workers.
const SHARDS: u32 = 8;

impl Migrate {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] if there is no store, if it has another schema, or if it cannot be distributed.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let data_dir = DataDir::new(&config.store)?;
        data_dir.require()?;
        if self.distribute {
            return distribute(&data_dir, self.shards, json).await;
        }
        data_dir.check_schema().await?;
        let database = data_dir.shown();
        let answer = json!({ "database": database, "migrated": false });
        output::reply(json, &answer, |_| {
            vec![format!(
                "{database} has the schema of this program: there is nothing else to do"
            )]
        })
    }
}

async fn distribute(data_dir: &DataDir, shards: u32, as_json: bool) -> Result<(), CliError> {
    let store = data_dir.open_to_distribute().await?;
    let opened = store.clone();
    let distributed = tokio::task::spawn_blocking(move || {
        let mut tables = Vec::new();
        let done = distribution::distribute(&opened, shards, |done| {
            if !as_json {
                output::note(&format!(
                    "  {} of {}: {}, {} rows",
                    done.number, done.of, done.table, done.rows
                ));
            }
            tables.push(done);
        });
        done.map(|()| tables)
    });
    let distributed = distributed.await.map_err(CliError::failed)?;
    store.close().await;
    let tables = distributed.map_err(CliError::failed)?;
    let database = data_dir.shown();
    let rows: BTreeMap<&str, i64> = tables.iter().map(|done| (done.table, done.rows)).collect();
    let answer = json!({
        "database": database,
        "distributed": true,
        "tables": rows,
    });
    output::reply(as_json, &answer, |_| vec![summary(database, &tables)])
}

fn summary(database: &str, tables: &[Distributed]) -> String {
    match tables.len() {
        0 => format!("{database} is distributed already"),
        count => format!("{database} is distributed: {count} tables"),
    }
}
