//! `migrate`: brings the database's schema up to date.

use std::collections::BTreeMap;

use clap::Args;
use driftline_store::{
    MigrationPlan, PendingMigration,
    distribution::{self, Distributed},
};
use serde_json::{Value, json};

use crate::{config::Config, data_dir::DataDir, error::CliError, output, progress::Waiting};

/// Brings the database to the schema of this program, as every start does.
#[derive(Debug, Args)]
pub struct Migrate {
    /// Only print what would run, with the rows of each table that it names.
    #[arg(long)]
    dry_run: bool,
    /// Distribute the store over the workers of its Citus cluster, for good; no other process may run.
    ///
    /// What an earlier try has distributed stays, so that it goes on where it was stopped.
    #[arg(long, conflicts_with = "dry_run")]
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
    /// [`CliError`] if there is no store, if another process holds its file, or if a migration
    /// fails.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let data_dir = DataDir::new(&config.store)?;
        data_dir.require()?;
        if self.distribute {
            return distribute(&data_dir, self.shards, json).await;
        }
        let plan = data_dir.migration_plan().await?;
        let is_done = !(self.dry_run || plan.pending.is_empty());
        if is_done {
            let _waiting = Waiting::start("migrating the database");
            let (lock, store) = data_dir
                .open_shared("stop it first, or let it migrate when it next starts")
                .await?;
            store.close().await;
            drop(lock);
        }
        let answer = as_json(&plan, data_dir.shown(), is_done);
        output::reply(json, &answer, |_| lines(&plan, data_dir.shown(), is_done))
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

fn lines(plan: &MigrationPlan, database: &str, is_done: bool) -> Vec<String> {
    let (version, program) = (plan.version.unwrap_or(0), plan.program);
    if plan.pending.is_empty() {
        let nothing = "there is nothing to migrate";
        let newer = match version > program {
            true => format!(", newer than this program's {program}, which can use it"),
            false => String::new(),
        };
        return vec![format!(
            "{database} has schema version {version}{newer}: {nothing}"
        )];
    }
    let is = if is_done { "is" } else { "would be" };
    let first = format!("{database} {is} migrated from schema version {version} to {program}");
    let steps = plan.pending.iter().map(|step| {
        let PendingMigration { migration, tables } = step;
        let tables = tables.iter().map(|(table, rows)| {
            let plural = if *rows == 1 { "" } else { "s" };
            format!("{table}: {rows} row{plural}")
        });
        let tables = tables.collect::<Vec<_>>().join(", ");
        let line = format!("  {} {}  {tables}", migration.version, migration.name);
        line.trim_end().to_owned()
    });
    std::iter::once(first).chain(steps).collect()
}

fn as_json(plan: &MigrationPlan, database: &str, is_done: bool) -> Value {
    let steps = plan
        .pending
        .iter()
        .map(|PendingMigration { migration, tables }| {
            let tables = tables
                .iter()
                .map(|(table, rows)| (table.clone(), json!(rows)));
            json!({
                "version": migration.version,
                "name": migration.name,
                "tables": tables.collect::<serde_json::Map<_, _>>(),
            })
        });
    json!({
        "database": database,
        "version": plan.version,
        "program_version": plan.program,
        "migrated": is_done,
        "migrations": steps.collect::<Vec<_>>(),
    })
}
