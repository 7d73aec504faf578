use xshell::cmd;

use crate::error::TaskError;
use crate::setup::python;
use crate::workspace::{Workspace, run as run_program};

/// A test of a package that runs under a seed.
pub(crate) struct SeededTest {
    package: &'static str,
    pub(crate) name: &'static str,
    /// Only the tests whose name contains this.
    filter: &'static str,
}

/// The simulations.
pub(crate) const SIMULATIONS: [SeededTest; 4] = [
    whole("driftline-core", "timeline"),
    whole("driftline-core", "sync"),
    whole("driftline-mirror", "simulation"),
    whole("driftline-mirror", "refresh_simulation"),
];

/// Other tests that run under a seed: replayed with the simulations.
pub(crate) const SEEDED: [SeededTest; 3] = [
    whole("driftline-core", "refresh"),
    whole("driftline-sim", "refresh_policies"),
    SeededTest {
        filter: "laws",
        ..whole("driftline-store", "contract")
    },
];

/// Other tests that draw more where they are told to: the division of shared work, what the store does
/// under leases, and the codec of the ID service under any bytes.
pub(crate) const DRAWN: [SeededTest; 4] = [
    whole("driftline-core", "sharing"),
    whole("driftline-sim", "refresh_policies"),
    whole("driftline-store", "contract"),
    whole("driftline-id-service", "ids"),
];

/// The tests that kill the process.
pub(crate) const KILLS: [SeededTest; 3] = [
    whole("driftline", "kill"),
    whole("driftline", "sharing"),
    whole("driftline", "sync"),
];

const fn whole(package: &'static str, name: &'static str) -> SeededTest {
    SeededTest {
        package,
        name,
        filter: "",
    }
}

impl SeededTest {
    /// Runs the test with `flags` of cargo and the variables given.
    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        flags: &[&str],
        variables: &[(&str, String)],
    ) -> Result<(), TaskError> {
        let (package, name, filter) = (self.package, self.name, self.filter);
        let shell = &workspace.shell;
        let test = cmd!(
            shell,
            "cargo test --locked --package {package} --test {name} {flags...} -- --nocapture {filter}"
        );
        for (variable, value) in variables {
            eprintln!("{variable}={value}");
        }
        let test = test.envs(variables.iter().map(|(variable, value)| (variable, value)));
        run_program(test.env(python::VARIABLE, python::interpreter(workspace)))
    }
}
