//! The key of what the store holds sealed.
//!
//! Sealed texts are encrypted and authenticated (ChaCha20-Poly1305, RFC 8439) with a key in a
//! file of its own: a copy of the database alone reveals none of them.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD as BASE64};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
    rand::{SecureRandom as _, SystemRandom},
};
use secrecy::{ExposeSecret as _, SecretString};
use tempfile::NamedTempFile;

/// A key in a file, which is made when it is first needed.
#[derive(Debug, Clone)]
pub struct SealingKey {
    file: PathBuf,
}

/// Why something cannot be sealed or unsealed. Never holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum SealingError {
    /// The key cannot be read or made.
    #[error("the key {path} of stored credentials cannot be used: {reason}")]
    Key {
        /// The key's file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The text was sealed with another key, or is damaged.
    #[error(
        "the stored credential cannot be unsealed: it was sealed with another key, or is damaged; add it again, or restore the key that it was sealed with"
    )]
    Unsealed,
}

impl SealingKey {
    /// The key in that file.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into() }
    }

    /// Its file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What the key is recognised by, which reveals nothing of it; differs from store to store.
    ///
    /// # Errors
    /// [`SealingError::Key`] if there is no key, or another text.
    pub fn fingerprint(&self, store_nonce: &str) -> Result<String, SealingError> {
        let bytes = self.bytes(false)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
        let tag = hmac::sign(&key, format!("driftline key of {store_nonce}").as_bytes());
        Ok(BASE64.encode(tag))
    }

    /// Makes the key if it is missing.
    ///
    /// # Errors
    /// [`SealingError::Key`] if it cannot be made, or what is there is no key.
    pub fn make(&self) -> Result<(), SealingError> {
        self.bytes(true).map(|_| ())
    }

    /// Seals a text, for that purpose alone: for another it is not unsealed. Makes the key if it is missing.
    ///
    /// # Errors
    /// [`SealingError::Key`].
    pub fn seal(&self, text: &SecretString, purpose: &str) -> Result<String, SealingError> {
        let key = self.cipher(true)?;
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_| self.error("the system has no random numbers"))?;
        let mut sealed = text.expose_secret().as_bytes().to_vec();
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(purpose),
            &mut sealed,
        )
        .map_err(|_| self.error("sealing failed"))?;
        let whole = [&nonce[..], &sealed].concat();
        Ok(BASE64.encode(whole))
    }

    /// What [`SealingKey::seal`] sealed.
    ///
    /// # Errors
    /// [`SealingError`].
    pub fn unseal(&self, sealed: &str, purpose: &str) -> Result<SecretString, SealingError> {
        let key = self.cipher(false)?;
        let unsealed = || {
            let mut whole = BASE64.decode(sealed).ok()?;
            let (nonce, sealed) = whole.split_at_mut_checked(NONCE_LEN)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let text = key.open_in_place(nonce, Aad::from(purpose), sealed);
            let text = std::str::from_utf8(text.ok()?).ok()?;
            Some(SecretString::from(text))
        };
        unsealed().ok_or(SealingError::Unsealed)
    }

    fn cipher(&self, make: bool) -> Result<LessSafeKey, SealingError> {
        UnboundKey::new(&CHACHA20_POLY1305, &self.bytes(make)?)
            .map(LessSafeKey::new)
            .map_err(|_| self.error("invalid key: expected 32 bytes"))
    }

    fn bytes(&self, make: bool) -> Result<Vec<u8>, SealingError> {
        let text = match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && make => self.write_new()?,
            read => read.map_err(|error| self.error(&error))?,
        };
        let bytes = BASE64
            .decode(text.trim())
            .map_err(|_| self.error("invalid key: expected base64"))?;
        match bytes.len() {
            KEY_BYTES => Ok(bytes),
            _ => Err(self.error("invalid key: expected 32 bytes")),
        }
    }

    fn write_new(&self) -> Result<String, SealingError> {
        let mut bytes = [0; KEY_BYTES];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| self.error("the system has no random numbers"))?;
        let text = BASE64.encode(bytes);
        // Atomic: another process may read the file at any time. Only its owner may read it.
        let write = || -> io::Result<()> {
            let folder = self.file.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            let mut file = NamedTempFile::new_in(folder)?;
            writeln!(file, "{text}")?;
            file.as_file().sync_all()?;
            file.persist_noclobber(&self.file)?;
            Ok(())
        };
        match write() {
            Ok(()) => Ok(text),
            // Another process made it at the same time.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::read_to_string(&self.file).map_err(|error| self.error(&error))
            }
            Err(error) => Err(self.error(&error)),
        }
    }

    fn error(&self, reason: impl std::fmt::Display) -> SealingError {
        SealingError::Key {
            path: self.file.display().to_string(),
            reason: reason.to_string(),
        }
    }
}

const KEY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart_and_none_is_made_for_that() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| SealingKey::new(folder.path().join(name)));
        assert!(matches!(
            one.fingerprint("store"),
            Err(SealingError::Key { .. })
        ));
        one.make().unwrap();
        other.make().unwrap();
        let seen = one.fingerprint("store").unwrap();
        one.make().unwrap();
        assert_eq!(one.fingerprint("store").unwrap(), seen);
        assert_ne!(other.fingerprint("store").unwrap(), seen);
        assert_ne!(one.fingerprint("another store").unwrap(), seen);
    }

    #[test]
    fn what_is_sealed_for_one_purpose_is_not_unsealed_for_another() {
        let folder = tempfile::tempdir().unwrap();
        let key = SealingKey::new(folder.path().join("key"));
        let sealed = key.seal(&SecretString::from("s3cret"), "one").unwrap();
        assert_eq!(
            key.unseal(&sealed, "one").unwrap().expose_secret(),
            "s3cret"
        );
        assert!(matches!(
            key.unseal(&sealed, "other"),
            Err(SealingError::Unsealed)
        ));
    }
}
