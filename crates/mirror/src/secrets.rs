//! Reads credentials: from the environment, from files, or sealed from the store.

use std::{fs, path::PathBuf};

use driftline_store::source::TokenLocation;
use driftline_upstream::{Credential, CredentialError};
use secrecy::{ExposeSecret as _, SecretString};

use crate::sealing_key::{SealingError, SealingKey};

/// Reads credentials. Clones use the same key file.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    key: Option<SealingKey>,
}

/// Why a credential is not available. Never holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The environment variable is not set.
    #[error("the environment variable {0} with the token is not set; set it and start again")]
    NoVariable(String),
    /// The file cannot be read.
    #[error("the file {path} with the token cannot be read: {reason}")]
    NoFile {
        /// Its path.
        path: String,
        /// Why.
        reason: String,
    },
    /// The text is not a valid credential.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// There is no key file.
    #[error("stored credentials need a key, and this command has no data folder for it")]
    NoKey,
    /// It cannot be sealed or unsealed.
    #[error(transparent)]
    Sealing(#[from] SealingError),
}

impl Secrets {
    /// Uses the key in that file, which is created when a credential is sealed for the first time.
    pub fn new(key_file: impl Into<PathBuf>) -> Self {
        Self {
            key: Some(SealingKey::new(key_file)),
        }
    }

    /// The credential at a location, for the server of that origin. Without a location,
    /// [`Credential::None`].
    ///
    /// # Errors
    /// [`SecretsError`]; it never holds the secret.
    pub fn read(
        &self,
        location: Option<&TokenLocation>,
        origin: &str,
    ) -> Result<Credential, SecretsError> {
        match self.text(location, origin)? {
            Some(text) => Ok(Credential::parse(text.expose_secret())?),
            None => Ok(Credential::None),
        }
    }

    /// The credential at a location, sealed for the store, for use at that origin alone: it is kept there from
    /// then on. One that is sealed stays as it is.
    ///
    /// # Errors
    /// [`SecretsError`]; it never holds the secret.
    pub fn sealed(
        &self,
        location: Option<&TokenLocation>,
        origin: &str,
    ) -> Result<Option<TokenLocation>, SecretsError> {
        if let Some(TokenLocation::Sealed(_)) = location {
            return Ok(location.cloned());
        }
        let text = self.text(location, origin)?;
        text.map(|text| {
            let text = SecretString::from(text.expose_secret().trim());
            self.seal(&text, origin)
        })
        .transpose()
    }

    fn text(
        &self,
        location: Option<&TokenLocation>,
        origin: &str,
    ) -> Result<Option<SecretString>, SecretsError> {
        Ok(match location {
            None => None,
            Some(TokenLocation::Environment(name)) => {
                let text = std::env::var(name).map(SecretString::from);
                Some(text.map_err(|_| SecretsError::NoVariable(name.clone()))?)
            }
            Some(TokenLocation::File(path)) => {
                let text = fs::read_to_string(path).map(SecretString::from);
                Some(text.map_err(|error| SecretsError::NoFile {
                    path: path.clone(),
                    reason: error.to_string(),
                })?)
            }
            Some(TokenLocation::Sealed(sealed)) => {
                Some(self.sealing_key()?.unseal(sealed, &purpose(origin))?)
            }
        })
    }

    /// Seals a credential's text for the store, for use at that origin alone. The text is validated
    /// first.
    ///
    /// # Errors
    /// [`SecretsError`] if the text is not a valid credential or the key cannot be used.
    pub fn seal(&self, text: &SecretString, origin: &str) -> Result<TokenLocation, SecretsError> {
        Credential::parse(text.expose_secret())?;
        let sealed = self.sealing_key()?.seal(text, &purpose(origin))?;
        Ok(TokenLocation::Sealed(sealed))
    }

    /// The key that credentials are sealed with.
    ///
    /// # Errors
    /// [`SecretsError::NoKey`] without a file for it.
    pub fn sealing_key(&self) -> Result<&SealingKey, SecretsError> {
        self.key.as_ref().ok_or(SecretsError::NoKey)
    }
}

/// Binds a sealed credential to its server, so that changing the origin in the database cannot send
/// the credential elsewhere.
fn purpose(origin: &str) -> String {
    format!("driftline credential for {origin}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "s3cret-token-of-a-user";
    const ORIGIN: &str = "https://a.example";

    fn secrets() -> (tempfile::TempDir, Secrets) {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::new(folder.path().join("keys/credentials.key"));
        (folder, secrets)
    }

    fn seal(secrets: &Secrets, text: &str) -> Result<TokenLocation, SecretsError> {
        secrets.seal(&SecretString::from(text), ORIGIN)
    }

    #[test]
    fn a_sealed_token_can_be_read_and_does_not_show() {
        let (_folder, secrets) = secrets();
        let location = seal(&secrets, TOKEN).unwrap();
        let again = seal(&secrets, TOKEN).unwrap();
        assert_ne!(location, again, "no two sealings are alike");
        let TokenLocation::Sealed(sealed) = &location else {
            panic!("{location:?}")
        };
        assert!(!sealed.contains("s3cret"));
        let Credential::Bearer(token) = secrets.read(Some(&location), ORIGIN).unwrap() else {
            panic!("no token")
        };
        assert_eq!(token.expose_secret(), TOKEN);
        let elsewhere = secrets.read(Some(&location), "https://b.example");
        assert!(matches!(
            elsewhere,
            Err(SecretsError::Sealing(SealingError::Unsealed))
        ));
    }

    #[test]
    fn another_key_or_damage_is_refused_and_reveals_nothing() {
        let ((_one, ours), (_two, theirs)) = (secrets(), secrets());
        let location = seal(&ours, TOKEN).unwrap();
        seal(&theirs, "other").unwrap();
        let refused = theirs.read(Some(&location), ORIGIN);
        assert!(matches!(
            refused,
            Err(SecretsError::Sealing(SealingError::Unsealed))
        ));
        let TokenLocation::Sealed(sealed) = location else {
            panic!("sealed")
        };
        for damaged in [&sealed[1..], &sealed[..20], "", "!", "AAAA"] {
            let location = TokenLocation::Sealed(damaged.to_owned());
            let error = ours.read(Some(&location), ORIGIN).unwrap_err().to_string();
            assert!(!error.contains(TOKEN) && !error.contains(&sealed));
        }
    }

    #[test]
    fn a_missing_key_is_not_made_for_reading() {
        let (_folder, ours) = secrets();
        let location = TokenLocation::Sealed("AAAA".to_owned());
        let read = |secrets: &Secrets| secrets.read(Some(&location), ORIGIN);
        assert!(matches!(
            read(&ours),
            Err(SecretsError::Sealing(SealingError::Key { .. }))
        ));
        let without = read(&Secrets::default());
        assert!(matches!(without, Err(SecretsError::NoKey)));
    }

    #[test]
    fn an_invalid_credential_is_not_sealed() {
        let (_folder, secrets) = secrets();
        for invalid in ["two words", ""] {
            assert!(seal(&secrets, invalid).is_err(), "{invalid:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_reads_the_key() {
        use std::os::unix::fs::PermissionsExt as _;
        let (folder, secrets) = secrets();
        seal(&secrets, TOKEN).unwrap();
        let file = folder.path().join("keys/credentials.key");
        let mode = fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
