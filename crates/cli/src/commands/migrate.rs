//! `migrate`: brings the database's schema up to date.

use clap::Args;
use driftline_store::{MigrationPlan, PendingMigration};
use serde_json::{Value, json};

use crate::{config::Config, data_dir::DataDir, error::CliError, output};

/// Brings the database to the schema of this program, as every start does.
#[derive(Debug, Args)]
pub struct Migrate {
    /// Only print what would run, with the rows of each table that it names.
    #[arg(long)]
    dry_run: bool,
}

impl Migrate {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] if there is no store, if another process holds its file, or if a migration
    /// fails.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let data_dir = DataDir::new(&config.store)?;
        data_dir.require()?;
        let plan = data_dir.migration_plan().await?;
        let is_done = !(self.dry_run || plan.pending.is_empty());
        if is_done {
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
