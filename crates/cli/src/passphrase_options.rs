//! Passphrases, which are never given on the command line, where lists of processes would show them.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Read},
    path::PathBuf,
};

use clap::Args;
use driftline_api::auth::PassphraseHasher;
use driftline_core::social::{Passphrase, PassphraseHash};
use secrecy::{ExposeSecret as _, SecretString};

use crate::error::CliError;

/// Where a new passphrase comes from: a file, a question on the terminal, or standard input.
#[derive(Debug, Clone, Args)]
pub struct PassphraseOptions {
    /// The file that holds the passphrase; without it, it is asked for on a terminal, or else read from
    /// standard input.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl PassphraseOptions {
    /// Reads the passphrase and hashes it: nothing but the hash leaves this process.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be read, or cannot be chosen. Never holds it.
    pub async fn hash(&self) -> Result<PassphraseHash, CliError> {
        let text = match &self.passphrase_file {
            Some(path) => {
                let read = File::open(path).and_then(read);
                let place = path.display();
                read.map_err(|error| CliError::usage(format!("{place} cannot be read: {error}")))?
            }
            None if io::stdin().is_terminal() => asked()?,
            None => read(io::stdin()).map_err(|error| {
                CliError::failed(format!("standard input cannot be read: {error}"))
            })?,
        };
        let chosen = Passphrase::choose(&text).map_err(CliError::usage)?;
        let hashed = PassphraseHasher::default().hash(chosen).await;
        hashed.map_err(CliError::failed)
    }
}

/// Asks twice, and shows nothing of what is typed.
fn asked() -> Result<SecretString, CliError> {
    let ask = |question| {
        let typed = rpassword::prompt_password(question).map(SecretString::from);
        typed.map_err(|error| CliError::failed(format!("the terminal cannot be read: {error}")))
    };
    let text = ask("Passphrase: ")?;
    // Before it is typed again for nothing.
    Passphrase::choose(&text).map_err(CliError::usage)?;
    match ask("Once more: ")?.expose_secret() == text.expose_secret() {
        true => Ok(text),
        false => Err(CliError::usage(
            "the two passphrases differ; nothing was changed",
        )),
    }
}

/// The whole text, without the line end that files and `echo` have.
fn read(from: impl Read) -> io::Result<SecretString> {
    // With room for all that may be read, so that no unwiped copy is left behind.
    let mut text = String::with_capacity(MAX_BYTES + 1);
    from.take(MAX_BYTES as u64).read_to_string(&mut text)?;
    let end = text
        .strip_suffix('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line).len());
    text.truncate(end.unwrap_or(text.len()));
    Ok(text.into())
}

/// Longer than any passphrase.
const MAX_BYTES: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_end_is_no_part_of_it() {
        for (text, expected) in [
            ("correct horse", "correct horse"),
            ("correct horse\n", "correct horse"),
            ("correct horse\r\n", "correct horse"),
            ("correct horse\n\n", "correct horse\n"),
            ("", ""),
        ] {
            let found = read(text.as_bytes()).unwrap();
            assert_eq!(found.expose_secret(), expected, "{text:?}");
        }
        assert!(read(&b"\xff"[..]).is_err());
    }
}
