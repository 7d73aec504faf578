use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use crate::error::TaskError;
use crate::toot::TOOT;
use crate::workspace::{Workspace, run as run_program, succeeds};

/// Tells the tests which interpreter has the real clients installed.
pub(crate) const VARIABLE: &str = "DRIFTLINE_PYTHON";

/// Debian's packages of Python with virtual environments and pip.
pub(super) const PACKAGES: [&str; 3] = ["python3", "python3-venv", "python3-pip"];

/// The interpreter of the virtual environment.
pub(crate) fn interpreter(workspace: &Workspace) -> PathBuf {
    interpreter_in(workspace, FOLDER)
}

/// The machine's Python that can make virtual environments and has pip.
pub(super) fn base(shell: &Shell) -> Option<&'static str> {
    ["python3", "/usr/bin/python3"]
        .into_iter()
        .find(|python| succeeds(cmd!(shell, "{python} -c 'import ensurepip, pip, venv'")))
}

/// Makes the virtual environment with the real clients, unless it stands already.
pub(super) fn prepare(workspace: &Workspace) -> Result<(), TaskError> {
    make(workspace, FOLDER, &REQUIREMENTS, Some(MASTODON_PY))
}

/// Makes one with what toot's own tests need, and returns its interpreter.
pub(crate) fn toot(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    make(
        workspace,
        TOOT_FOLDER,
        &[TOOT, "pytest==9.2.0", "pillow==13.0.0"],
        None,
    )?;
    Ok(interpreter_in(workspace, TOOT_FOLDER))
}

fn interpreter_in(workspace: &Workspace, folder: &str) -> PathBuf {
    workspace.root.join(folder).join("bin").join("python")
}

/// Unpacks a package's source distribution from PyPI into a folder.
pub(crate) fn unpack_sources(
    shell: &Shell,
    python: &Path,
    package: &str,
    folder: &Path,
) -> Result<(), TaskError> {
    run_program(cmd!(
        shell,
        "{python} -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest {folder} {package}"
    ))?;
    let archives = shell.read_dir(folder)?.into_iter();
    let archive = archives
        .last()
        .ok_or_else(|| TaskError::message("pip brought no sources"))?;
    run_program(cmd!(shell, "{python} -m tarfile -e {archive} {folder}"))
}

/// Makes one with these packages, and with one package's sources next to them.
fn make(
    workspace: &Workspace,
    folder: &str,
    requirements: &[&str],
    sources: Option<&str>,
) -> Result<(), TaskError> {
    let shell = &workspace.shell;
    let python = interpreter_in(workspace, folder);
    let stamp = workspace.root.join(folder).join("driftline-requirement");
    let wanted = requirements.join(" ");
    let stamped = shell.read_file(&stamp).is_ok_and(|text| text == wanted);
    if stamped && succeeds(cmd!(shell, "{python} --version")) {
        return Ok(());
    }
    let base = base(shell).ok_or_else(|| {
        TaskError::message("python3 with the modules venv, ensurepip and pip is still missing")
    })?;
    eprintln!("setup: {wanted} in {folder}");
    run_program(cmd!(shell, "{base} -m venv --clear {folder}"))?;
    run_program(cmd!(
        shell,
        "{python} -m pip install --quiet --disable-pip-version-check {requirements...}"
    ))?;
    if let Some(package) = sources {
        let into = workspace.root.join(folder).join("sources");
        unpack_sources(shell, &python, package, &into)?;
    }
    Ok(shell.write_file(stamp, wanted)?)
}

const FOLDER: &str = "target/python";
/// The newest of each: Mastodon.py, which reads Driftline and the simulated upstream, toot, which reads
/// the former, tweepy, which reads the latter, two clients of Thrift that know nothing of each other, three readers of
/// exports, an SMTP server that takes Driftline's mail, and a reader of Mastodon.py's cassettes.
const REQUIREMENTS: [&str; 10] = [
    MASTODON_PY,
    TOOT,
    "tweepy==4.17.0",
    "thriftpy2==0.7.1",
    "thrift==0.25.0",
    "pyarrow==26.0.1",
    "duckdb==2.0.0",
    "pandas==3.1.1",
    "aiosmtpd==1.4.6",
    "PyYAML==6.0.3",
];
/// Its sources (MIT licence) contain cassettes: recorded answers of real servers.
const MASTODON_PY: &str = "Mastodon.py[websocket-streaming]==2.3.3";
const TOOT_FOLDER: &str = "target/toot";
