//! Consent to what cannot be undone.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::Args;

use crate::{error::CliError, output};

/// Whether a person has agreed already.
#[derive(Debug, Clone, Copy, Args)]
pub struct Consent {
    /// Do it without asking.
    #[arg(long)]
    yes: bool,
}

impl Consent {
    /// Where `--yes` is an option of the command's own.
    pub const fn of(yes: bool) -> Self {
        Self { yes }
    }

    /// Whether nobody needs to be asked.
    pub const fn is_given(self) -> bool {
        self.yes
    }

    /// Says what is about to happen, and asks for consent on a terminal.
    ///
    /// # Errors
    /// [`CliError::Usage`], naming `--yes`, where nobody can be asked; [`CliError::Failed`] if it is
    /// refused.
    pub fn ask(self, what: &str) -> Result<(), CliError> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(CliError::usage(format!(
                "{what}; nobody can be asked here: add --yes to do it"
            )));
        }
        output::error(what);
        let _ = write!(io::stderr().lock(), "Go on? [y/N] ");
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        match read {
            Ok(_) if agrees(&answer) => Ok(()),
            Ok(_) => Err(CliError::failed("nothing was changed")),
            Err(error) => Err(CliError::failed(format!(
                "the answer cannot be read ({error}); nothing was changed"
            ))),
        }
    }
}

/// Whether an answer agrees; nothing, or the end of the input, does not.
fn agrees(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_agrees() {
        for yes in ["y", "Y\n", " yes \r\n", "YES"] {
            assert!(agrees(yes), "{yes:?}");
        }
        for no in ["", "\n", "n", "no", "yess", "y e s", "ja", "--yes"] {
            assert!(!agrees(no), "{no:?}");
        }
    }
}
