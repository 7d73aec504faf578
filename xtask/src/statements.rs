//! The checked-in list of the store's statements, with what a distributed PostgreSQL makes of each.

mod list;
mod plan;
mod record;

use std::fs;
use std::path::Path;

use clap::Args;

use crate::error::TaskError;
use crate::setup;
use crate::test::DISTRIBUTE;
use crate::test::cluster::{self, Cluster, ServerUrl};
use crate::test::programs::{self, Program};
use crate::workspace::Workspace;
use list::List;
use record::Records;

/// What `cargo xtask statements` takes.
#[derive(Debug, Args)]
pub(crate) struct StatementsArgs {
    /// The coordinator of a Citus cluster, which the contract suite is run on
    #[arg(long, value_name = "URL")]
    database_url: Option<ServerUrl>,
    /// Runs only the tests whose name contains this, and only adds what they send and the list lacks
    #[arg(long)]
    filter: Option<String>,
}

/// Runs the store's contract suite on one PostgreSQL and on a distributed one, and writes the list of
/// the statements that it sends, with their plans. A statement that is sent no more leaves the list.
///
/// If a test fails, what it would have sent may be missing: so nothing leaves the list then.
pub(crate) fn run(workspace: &Workspace, args: &StatementsArgs) -> Result<(), TaskError> {
    setup::run(workspace)?;
    let url = ServerUrl::or_of_environment(args.database_url.as_ref()).ok_or_else(|| {
        TaskError::message("statements: name a Citus cluster's coordinator by --database-url URL")
    })?;
    // Before all is built: it may be of no use.
    let cluster = Cluster::named(&cluster::program(workspace)?, url)?;
    let records = tempfile::tempdir()
        .map_err(|error| TaskError::Program("a temporary folder".to_owned(), error))?;
    let filter = args.filter.as_deref();
    // Both before one is run, so that they are of the same source.
    let mut programs = Vec::new();
    for is_distributed in [false, true] {
        let mut program = programs::build_one(workspace, PACKAGE, PROGRAM, filter)?;
        let command = &mut program.command;
        command.env(RECORD, records.path()).env(EXPLAIN, "1");
        match is_distributed {
            true => command.envs(cluster.variables()).env(DISTRIBUTE, "1"),
            false => command.env_remove(cluster::VARIABLE).env_remove(DISTRIBUTE),
        };
        programs.push(program);
    }
    let mut has_failed = false;
    for program in programs {
        has_failed |= !succeeds(program)?;
    }
    drop(cluster);
    let records = Records::read(records.path())?;
    let path = workspace.root.join(LIST);
    let former = List::parse(&fs::read_to_string(&path).unwrap_or_default());
    let mut list = List::of(&records);
    if filter.is_some() {
        list = former.clone().with_others_of(list);
    } else if has_failed {
        list = list.with_others_of(former.clone());
    }
    write(&path, &list.text())?;
    for (sign, statement) in former.changes(&list) {
        eprintln!("{sign} {statement}");
    }
    eprintln!("statements: {LIST} has {} statements", list.len());
    eprintln!("{}", list.summary());
    match has_failed {
        false => Ok(()),
        true => Err(TaskError::message(
            "statements: tests failed, so no statement has left the list, and some may be missing",
        )),
    }
}

/// The statements of the list that none of the tests has sent which wrote into that folder.
pub(crate) fn unsent(workspace: &Workspace, records: &Path) -> Result<Vec<String>, TaskError> {
    let sent = Records::read(records)?;
    let text = workspace.shell.read_file(LIST)?;
    let listed = List::parse(&text);
    Ok(listed.without(&sent))
}

fn succeeds(mut program: Program) -> Result<bool, TaskError> {
    let failed = |error| TaskError::Program(program.name.clone(), error);
    let status = program.command.status().map_err(failed)?;
    Ok(status.success())
}

fn write(path: &Path, text: &str) -> Result<(), TaskError> {
    fs::write(path, text).map_err(|error| TaskError::Program(LIST.to_owned(), error))
}

const PACKAGE: &str = "store";
const PROGRAM: &str = "contract";
pub(crate) const LIST: &str = "crates/store/tests/contract/statements.txt";
/// Tells the store's tests to have their statements explained, and not to compare them with the list.
const EXPLAIN: &str = "DRIFTLINE_EXPLAIN_STATEMENTS";
/// Names the folder where the store's tests write down what they send.
pub(crate) const RECORD: &str = "DRIFTLINE_RECORD_STATEMENTS";
