use std::{
    fs::{self, File},
    io::{self, Read, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use secrecy::{ExposeSecret as _, SecretString};

use crate::ReplicaError;

/// A token of an account, which is sent to its server and never shown.
#[derive(Clone, Debug)]
pub struct Token(SecretString);

impl Token {
    /// Reads a token: one line of visible ASCII characters.
    ///
    /// # Errors
    /// [`ReplicaError::Token`] if the token is missing or cannot be read. The error never contains the token.
    pub fn read(from: impl Read) -> Result<Self, ReplicaError> {
        // With room for all that may be read, so that no copy stays in memory that was freed.
        let mut text = String::with_capacity(MAX_TOKEN_BYTES + 1);
        let limit = u64::try_from(MAX_TOKEN_BYTES + 1).unwrap_or(u64::MAX);
        let read = from.take(limit).read_to_string(&mut text);
        let text = SecretString::from(text);
        read.map_err(|error| ReplicaError::Token(format!("cannot be read: {error}")))?;
        Self::from_secret(&text)
    }

    /// A token that was typed.
    ///
    /// # Errors
    /// [`ReplicaError::Token`] if it is not one line of visible ASCII characters. Never contains what was typed.
    pub fn from_secret(text: &SecretString) -> Result<Self, ReplicaError> {
        let line = text.expose_secret().trim();
        if line.is_empty() {
            return Err(ReplicaError::Token("is empty".to_owned()));
        }
        if line.len() > MAX_TOKEN_BYTES || !line.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ReplicaError::Token(
                "is not one line of visible ASCII characters".to_owned(),
            ));
        }
        Ok(Self(line.to_owned().into()))
    }

    /// The text without this token, for messages.
    pub(crate) fn without(&self, text: &str) -> String {
        text.replace(self.expose(), "…")
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Reads the token of a replica's folder.
    pub(crate) fn of_folder(folder: &Path) -> Result<Self, ReplicaError> {
        let path = folder.join(TOKEN_FILE);
        let file = File::open(&path);
        let file = file.map_err(|error| ReplicaError::file("be opened", &path, &error))?;
        Self::read(file)
    }

    /// Writes the token into a replica's folder, for its owner only. The file is complete whenever it exists.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), ReplicaError> {
        let [path, part] = [TOKEN_FILE, "token.part"].map(|name| folder.join(name));
        let written = || {
            // An interrupted write may have left one with another mode.
            match fs::remove_file(&part) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut options = File::options();
            let options = options.write(true).create_new(true).mode(0o600);
            let mut file = options.open(&part)?;
            writeln!(file, "{}", self.expose())?;
            file.sync_all()?;
            fs::rename(&part, &path)?;
            File::open(folder)?.sync_all()
        };
        written().map_err(|error: io::Error| ReplicaError::file("be written", &path, &error))
    }
}

/// The token's file in a replica's folder.
pub(crate) const TOKEN_FILE: &str = "token";
/// Longer than any token.
const MAX_TOKEN_BYTES: usize = 8_192;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_kept_for_its_owner_and_never_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("token.part"), "left behind").expect("a file");
        let token = Token::read("  sesame\r\n".as_bytes()).expect("a token");
        token.write(folder.path()).expect("a write");
        let path = folder.path().join(TOKEN_FILE);
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = Token::of_folder(folder.path()).expect("a token");
        assert_eq!(again.expose(), "sesame");
        assert!(!format!("{again:?}").contains("sesame"));
        assert_eq!(again.without("not sesame, please"), "not …, please");
    }

    #[test]
    fn what_is_no_token_is_refused_and_not_shown() {
        let long = "secret".repeat(2_000);
        for wrong in ["", " \n", "a secret", "secret\nsecret", "secretö", &long] {
            let error = Token::read(wrong.as_bytes()).expect_err("no token");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        assert!(Token::read(&b"\xff"[..]).is_err());
    }
}
