//! `completions`: what shells complete.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::{cli::Cli, error::CliError, output};

/// Prints completions for a shell.
#[derive(Debug, Clone, Copy, Args)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError::BrokenPipe`] if the reader has closed the output.
    pub fn run(self) -> Result<(), CliError> {
        output::line(script(self.shell).trim_end())
    }
}

fn script(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "driftline", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_shell_completes_every_command() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for command in Cli::command().get_subcommands() {
                let name = command.get_name();
                assert!(script.contains(name), "{shell} lacks {name}");
                for below in command.get_subcommands() {
                    let below = below.get_name();
                    assert!(script.contains(below), "{shell} lacks {name} {below}");
                }
            }
        }
    }
}
