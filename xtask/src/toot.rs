use std::{
    path::Path,
    process::{Child, Command},
};

use clap::Args;
use tempfile::TempDir;
use xshell::cmd;

use crate::error::TaskError;
use crate::setup::python;
use crate::workspace::{Workspace, start, without_own_variables};

/// What `cargo xtask test-toot` takes.
#[derive(Debug, Args)]
pub(crate) struct TootArgs {
    /// Which of its tests, as pytest's `-k` takes them
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,
}

/// Runs the tests that toot's authors wrote against a server, and says which pass. Those of what Driftline has not
/// (posting, media, polls) fail, so that this is a report and no check.
pub(crate) fn run(workspace: &Workspace, args: &TootArgs) -> Result<(), TaskError> {
    let program = workspace.build(&["--bin", "driftline"])?.join("driftline");
    let python = python::toot(workspace)?;
    let shell = &workspace.shell;
    let folder = tempfile::tempdir().map_err(|error| failed("a folder", error))?;
    let sources = folder.path().join("toot");
    python::unpack_sources(shell, &python, TOOT, &sources)?;
    let root = sources.join(TOOT.replace("==", "-"));
    let server = Server::start(&program, &folder)?;
    let filter = args.filter.iter().flat_map(|filter| ["-k", filter]);
    let tests = without_own_variables(cmd!(
        shell,
        "{python} -m pytest --quiet --tb=line -rA -p no:cacheprovider tests/integration {filter...}"
    ));
    let _in_root = shell.push_dir(&root);
    let tests = tests.env("TOOT_TEST_BASE_URL", format!("http://{ADDRESS}"));
    // pytest says itself what failed; its last lines are the report.
    drop(tests.ignore_status().run());
    drop(server);
    Ok(())
}

/// A server where anybody signs up.
struct Server(Child);

impl Server {
    fn start(program: &Path, folder: &TempDir) -> Result<Server, TaskError> {
        let mut serve = Command::new(program);
        serve.arg("--data").arg(folder.path().join("data"));
        serve.args(["serve", "--insecure-test", "--listen", ADDRESS]);
        let (child, line) = start(&mut serve)?;
        let server = Server(child);
        match line.contains(ADDRESS) {
            true => Ok(server),
            false => Err(TaskError::message(format!(
                "`driftline serve` does not listen on {ADDRESS}"
            ))),
        }
    }
}

/// It ends with the tests.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn failed(what: &str, error: std::io::Error) -> TaskError {
    TaskError::Program(what.to_owned(), error)
}

/// The version whose tests are run, which is that of the tests of clients.
pub(crate) const TOOT: &str = "toot==0.52.1";
/// Where toot's authors have their test server.
const ADDRESS: &str = "127.0.0.1:3000";
