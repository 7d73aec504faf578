//! Processes that benchmarks start, and the memory that they take.

use std::{
    env, fs,
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};

use crate::failure::Failure;

/// The program under test.
#[derive(Debug, Clone, Args)]
pub(crate) struct Driftline {
    /// The driftline binary, built for release
    #[arg(long = "driftline", value_name = "PATH", default_value = DRIFTLINE)]
    pub(crate) path: PathBuf,
}

impl Driftline {
    /// A command of it that prints nothing but results, on this data folder.
    pub(crate) fn command(&self, data: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(["--quiet", "--data"]).arg(data);
        command.args(arguments).stdin(Stdio::null());
        command
    }
}

/// The two sides of a comparison, each in a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    Driftline,
    /// Its peer.
    Bare,
}

impl Side {
    /// Its name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Driftline => "driftline",
            Self::Bare => "bare",
        }
    }
}

/// The main workspace builds the binary there, unless it is configured otherwise.
const DRIFTLINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/dist/driftline");

/// A process that ends with this value.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Its standard output, which it may write to again.
    pub(crate) output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Result<Self, Failure> {
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| {
            let program = command.get_program().display();
            Failure::new(format!("{program} could not be started: {error}"))
        })?;
        let output = child.stdout.take();
        let output = output.ok_or_else(|| Failure::new("a process has no output"))?;
        Ok(Self {
            child,
            output: BufReader::new(output),
        })
    }

    /// Starts this program with other arguments; it is to end with its standard input.
    pub(crate) fn start_own(arguments: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(env::current_exe()?);
        // The token of the sources that it polls.
        command.env(TOKEN_VARIABLE, "bench");
        Self::start(command.args(arguments).stdin(Stdio::piped()))
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Waits until it prints that it is ready.
    pub(crate) fn until_ready(mut self) -> Result<Self, Failure> {
        match self.line()?.as_str() {
            "ready" => Ok(self),
            other => Err(Failure::new(format!(
                "a process prints {other:?}, not that it is ready"
            ))),
        }
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its memory so far.
    pub(crate) fn memory(&self) -> Result<Memory, Failure> {
        Memory::of(self.id())
    }

    /// Ends its standard input; returns the line that it prints then.
    pub(crate) fn end(mut self) -> Result<String, Failure> {
        drop(self.child.stdin.take());
        let line = self.line()?;
        self.child.wait()?;
        Ok(line)
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.kill();
    }
}

/// Waits until the standard input of this program ends.
pub(crate) fn until_input_ends() -> Result<(), Failure> {
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Resident memory, MB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// At the moment.
    pub(crate) resident_mb: f64,
    /// At most.
    pub(crate) peak_mb: f64,
}

impl Memory {
    /// The memory of a process.
    pub(crate) fn of(id: u32) -> Result<Self, Failure> {
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let mb = |name: &str| -> Result<f64, Failure> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next());
            let kib: Option<f64> = kib.and_then(|kib| kib.parse().ok());
            let kib = kib.ok_or_else(|| Failure::new(format!("/proc/PID/status has no {name}")))?;
            Ok(kib * 1_024.0 / 1e6)
        };
        Ok(Self {
            resident_mb: mb("VmRSS:")?,
            peak_mb: mb("VmHWM:")?,
        })
    }
}

/// The time and memory that a run took.
pub(crate) struct Ran {
    pub(crate) seconds: f64,
    /// Resident memory at most, MiB.
    pub(crate) peak_mib: f64,
}

/// Runs a program to its end, which must be a success. Its memory is looked at each 5 ms: the most is that of
/// the last look.
pub(crate) fn run(command: &mut Command) -> Result<Ran, Failure> {
    let begun = Instant::now();
    let mut process = command.stdin(Stdio::null()).spawn()?;
    let mut peak_mb = 0.0;
    let ended = loop {
        if let Some(ended) = process.try_wait()? {
            break ended;
        }
        peak_mb = Memory::of(process.id()).map_or(peak_mb, |memory| memory.peak_mb);
        sleep(Duration::from_millis(5));
    };
    match ended.success() {
        true => Ok(Ran {
            seconds: begun.elapsed().as_secs_f64(),
            peak_mib: peak_mb * 1e6 / 1_048_576.0,
        }),
        false => Err(Failure::new(format!("{command:?} ended with {ended}"))),
    }
}

/// The variable with the token of sources.
pub(crate) const TOKEN_VARIABLE: &str = "DRIFTLINE_BENCH_TOKEN";

/// A folder on a disk: the system's temporary files may be kept in memory.
pub(crate) fn disk() -> PathBuf {
    env::var_os("DRIFTLINE_BENCH_DISK").map_or_else(|| "/var/tmp".into(), PathBuf::from)
}
