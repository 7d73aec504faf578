//! Passphrases, which are never given on the command line, where lists of processes would show them.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Read},
    path::PathBuf,
};

use clap::Args;
use driftline_api::auth::PassphraseHasher;
use driftline_core::social::{Passphrase, PassphraseHash};
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;

use crate::{error::CliError, hidden_input::ask, output};

/// Where a new passphrase comes from; without an option it is asked for on the terminal.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub struct PassphraseOptions {
    /// Read the passphrase from standard input.
    #[arg(long)]
    stdin: bool,
    /// The file that holds the passphrase.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Make a passphrase by chance, and print it once.
    #[arg(long)]
    generate: bool,
}

/// A new passphrase: its hash, which alone leaves this process, and the text if nobody knows it yet.
#[derive(Debug)]
pub struct NewPassphrase {
    /// Its hash.
    pub hash: PassphraseHash,
    /// The text that was made by chance.
    pub generated: Option<Generated>,
}

/// A passphrase that was made by chance, to be printed once what it opens is stored.
#[derive(Debug)]
pub struct Generated(SecretString);

/// A reply with the passphrase that was made by chance.
#[derive(Serialize)]
struct WithPassphrase<'a, R> {
    #[serde(flatten)]
    reply: &'a R,
    passphrase: &'a str,
}

impl PassphraseOptions {
    /// Reads or makes the passphrase and hashes it.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be read, or cannot be chosen. Never holds it.
    pub async fn read(&self) -> Result<NewPassphrase, CliError> {
        let (text, generated) = match (self.generate, &self.passphrase_file) {
            (true, _) => {
                let text = by_chance()?;
                (text.clone(), Some(Generated(text)))
            }
            (false, Some(path)) => {
                let read = File::open(path).and_then(read);
                let place = path.display();
                let text = read.map_err(|error| {
                    CliError::usage(format!("the file {place} cannot be read: {error}"))
                })?;
                (text, None)
            }
            (false, None) => (self.typed()?, None),
        };
        let chosen = Passphrase::choose(&text).map_err(CliError::usage)?;
        let hashed = PassphraseHasher::default().hash(chosen).await;
        let hash = hashed.map_err(CliError::failed)?;
        Ok(NewPassphrase { hash, generated })
    }

    /// What somebody types, or sends to standard input.
    fn typed(&self) -> Result<SecretString, CliError> {
        match (io::stdin().is_terminal(), self.stdin) {
            (true, _) => asked(),
            (false, true) => read(io::stdin()).map_err(|error| {
                CliError::failed(format!("standard input cannot be read: {error}"))
            }),
            (false, false) => Err(CliError::usage(
                "nobody can be asked for the passphrase here: add --stdin, --passphrase-file FILE or --generate",
            )),
        }
    }
}

/// Prints a reply, and the passphrase if it was made by chance: here alone.
///
/// # Errors
/// As for [`output::reply`].
pub fn reply<R: Serialize>(
    as_json: bool,
    reply: &R,
    generated: Option<&Generated>,
    shown: impl FnOnce(&R) -> Vec<String>,
) -> Result<(), CliError> {
    let Some(Generated(text)) = generated else {
        return output::reply(as_json, reply, shown);
    };
    let passphrase = text.expose_secret();
    if as_json {
        return output::json(&WithPassphrase { reply, passphrase });
    }
    output::reply(false, reply, shown)?;
    output::line(&format!("its passphrase, shown this once: {passphrase}"))
}

/// 150 bits, in letters and digits that cannot be taken for each other.
fn by_chance() -> Result<SecretString, CliError> {
    let mut bytes = [0_u8; GROUPS * GROUP];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| CliError::failed("the system gives no random numbers"))?;
    let mut text = String::with_capacity(GROUPS * (GROUP + 1));
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 && at % GROUP == 0 {
            text.push('-');
        }
        text.push(char::from(ALPHABET[usize::from(byte % 32)]));
    }
    Ok(text.into())
}

/// Asks twice, and shows nothing of what is typed.
fn asked() -> Result<SecretString, CliError> {
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
const GROUPS: usize = 5;
const GROUP: usize = 6;
/// Without i, l, o and u.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

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

    #[test]
    fn one_made_by_chance_can_be_chosen_and_is_another_each_time() {
        let (one, other) = (by_chance().unwrap(), by_chance().unwrap());
        assert!(Passphrase::choose(&one).is_ok());
        assert_ne!(one.expose_secret(), other.expose_secret());
        assert_eq!(one.expose_secret().len(), 34);
        let letters = one.expose_secret().split('-').flat_map(str::bytes);
        assert!(letters.into_iter().all(|byte| ALPHABET.contains(&byte)));
        assert!(!format!("{:?}", Generated(one.clone())).contains(one.expose_secret()));
    }
}
