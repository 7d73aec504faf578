//! `completions`: what shells complete.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::{error::CliError, output};

/// Prints completions for a shell.
#[derive(Debug, Clone, Copy, Args)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    /// Prints the completions of this command and those below it.
    ///
    /// # Errors
    /// [`CliError::BrokenPipe`] if the reader has closed the output.
    pub fn run(self, command: &mut Command) -> Result<(), CliError> {
        output::line(script(self.shell, command).trim_end())
    }
}

fn script(shell: Shell, command: &mut Command) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, command, "driftline", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, ValueEnum as _};

    use crate::cli::Cli;

    use super::*;

    #[test]
    fn every_shell_completes_every_command() {
        for shell in Shell::value_variants() {
            let script = script(*shell, &mut Cli::command());
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
