use std::path::Path;

use xshell::{Cmd, cmd};

use crate::error::TaskError;
use crate::setup::python;
use crate::workspace::{Workspace, run as run_program};

/// A test of a package that runs under a seed.
pub(crate) struct SeededTest {
    package: &'static str,
    folder: &'static str,
    name: &'static str,
    /// Only the tests whose name contains this.
    filter: &'static str,
}

/// The simulations.
pub(crate) const SIMULATIONS: [SeededTest; 3] = [
    SeededTest {
        package: "driftline-core",
        folder: "crates/core",
        name: "timeline",
        filter: "",
    },
    SeededTest {
        package: "driftline-mirror",
        folder: "crates/mirror",
        name: "simulation",
        filter: "",
    },
    SeededTest {
        package: "driftline-mirror",
        folder: "crates/mirror",
        name: "refresh_simulation",
        filter: "",
    },
];

/// Other tests that run under a seed: replayed with the simulations.
pub(crate) const SEEDED: [SeededTest; 3] = [
    SeededTest {
        package: "driftline-core",
        folder: "crates/core",
        name: "refresh",
        filter: "",
    },
    SeededTest {
        package: "driftline-sim",
        folder: "crates/sim",
        name: "refresh_policies",
        filter: "",
    },
    SeededTest {
        package: "driftline-store",
        folder: "crates/store",
        name: "contract",
        filter: "laws",
    },
];

/// Other tests that draw more where they are told to: what the store does under leases, and the
/// codec of the ID service under any bytes.
pub(crate) const DRAWN: [SeededTest; 3] = [
    SeededTest {
        package: "driftline-sim",
        folder: "crates/sim",
        name: "refresh_policies",
        filter: "",
    },
    SeededTest {
        package: "driftline-store",
        folder: "crates/store",
        name: "contract",
        filter: "",
    },
    SeededTest {
        package: "driftline-id-service",
        folder: "crates/id_service",
        name: "ids",
        filter: "",
    },
];

/// The tests that kill the process.
pub(crate) const KILLS: [SeededTest; 2] = [
    SeededTest {
        package: "driftline",
        folder: "crates/cli",
        name: "kill",
        filter: "",
    },
    SeededTest {
        package: "driftline",
        folder: "crates/cli",
        name: "refresh_kill",
        filter: "",
    },
];

impl SeededTest {
    /// Runs the test with `flags` of cargo and the variables given; a test that does not exist
    /// is passed over with a word.
    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        flags: &[&str],
        variables: &[(&str, String)],
    ) -> Result<(), TaskError> {
        let SeededTest {
            package,
            folder,
            name,
            filter,
        } = self;
        if !self.exists(workspace) {
            eprintln!("{package} has no test `{name}` in {folder}/tests: passed over");
            return Ok(());
        }
        let shell = &workspace.shell;
        let test: Cmd<'_> = cmd!(
            shell,
            "cargo test --locked --package {package} --test {name} {flags...} -- --nocapture {filter}"
        );
        for (variable, value) in variables {
            eprintln!("{variable}={value}");
        }
        let test = test.envs(variables.iter().map(|(variable, value)| (variable, value)));
        run_program(test.env(python::VARIABLE, python::interpreter(workspace)))
    }

    fn exists(&self, workspace: &Workspace) -> bool {
        let tests = Path::new(self.folder).join("tests");
        workspace.has(tests.join(format!("{}.rs", self.name)))
            || workspace.has(tests.join(self.name).join("main.rs"))
    }
}
