//! The file of the keys that native tokens are signed with.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use driftline_api::auth::TokenKeys;
use driftline_runtime::now_ms;
use secrecy::{ExposeSecret as _, SecretString};
use tempfile::NamedTempFile;

/// Why the keys cannot be used. Never holds one.
#[derive(Debug, thiserror::Error)]
#[error("the keys of tokens in {path} cannot be used: {reason}")]
pub struct KeyFileError {
    path: PathBuf,
    reason: String,
}

/// Reads the keys, as [`load_or_make`] does, with a new one once the newest is [`MAX_KEY_AGE_MS`] old.
///
/// # Errors
/// [`KeyFileError`] as for [`load_or_make`] and [`rotate`].
pub fn load_fresh(path: &Path, now_ms: i64) -> Result<TokenKeys, KeyFileError> {
    let keys = load_or_make(path)?;
    if now_ms - keys.newest_at_ms() < MAX_KEY_AGE_MS {
        return Ok(keys);
    }
    rotate(path, now_ms)?;
    load_or_make(path)
}

/// How old the key that signs may be at a start.
pub const MAX_KEY_AGE_MS: i64 = 90 * 86_400_000;

/// Reads the keys, and makes the file with one if there is none. Only its owner may read it.
///
/// # Errors
/// [`KeyFileError`] if it cannot be read, made or understood.
pub fn load_or_make(path: &Path) -> Result<TokenKeys, KeyFileError> {
    match fs::read_to_string(path) {
        Ok(text) => parse(path, text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let keys = TokenKeys::new(random(path)?, random(path)?, now_ms());
            match save(path, &keys.text(), false) {
                // Another process made it at the same time.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let text = fs::read_to_string(path).map_err(|error| failed(path, &error))?;
                    parse(path, text)
                }
                saved => saved.map(|()| keys).map_err(|error| failed(path, &error)),
            }
        }
        Err(error) => Err(failed(path, &error)),
    }
}

/// Adds a key; tokens of the one before stay good.
///
/// # Errors
/// [`KeyFileError`] if the file cannot be read, understood or replaced.
pub fn rotate(path: &Path, now_ms: i64) -> Result<(), KeyFileError> {
    let keys = load_or_make(path)?;
    let rotated = keys.rotated(random(path)?, random(path)?, now_ms);
    save(path, &rotated.text(), true).map_err(|error| failed(path, &error))
}

fn parse(path: &Path, text: String) -> Result<TokenKeys, KeyFileError> {
    let text = SecretString::from(text);
    TokenKeys::parse(text.expose_secret()).map_err(|error| failed(path, &error))
}

/// Atomic: another process may read the file at any time.
fn save(path: &Path, text: &SecretString, replaces: bool) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.expose_secret().as_bytes())?;
    file.as_file().sync_all()?;
    match replaces {
        true => file.persist(path)?,
        false => file.persist_noclobber(path)?,
    };
    fs::File::open(folder)?.sync_all()
}

fn random<const N: usize>(path: &Path) -> Result<[u8; N], KeyFileError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| failed(path, &error))?;
    Ok(bytes)
}

fn failed(path: &Path, reason: &impl std::fmt::Display) -> KeyFileError {
    KeyFileError {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_keys_persist_and_only_their_owner_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys/tokens.key");
        let text = |keys: &TokenKeys| keys.text().expose_secret().to_owned();
        let made = load_or_make(&path).unwrap();
        assert_eq!(text(&load_or_make(&path).unwrap()), text(&made));
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let later = now_ms() + MAX_KEY_AGE_MS;
        assert_eq!(
            text(&load_fresh(&path, later - 1_000_000).unwrap()),
            text(&made)
        );
        let rotated = text(&load_fresh(&path, later).unwrap());
        assert_eq!(rotated.lines().count(), 2);
        assert!(rotated.ends_with(&text(&made)));
        fs::write(&path, "s3cret").unwrap();
        let error = load_or_make(&path).unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
}
