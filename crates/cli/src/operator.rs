//! The operator's token: where the configuration says that it is, or in the data folder.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use driftline_api::auth::OperatorToken;
use secrecy::{ExposeSecret as _, SecretString};

use crate::{durable, error::CliError, output};

/// Reads the operator's token from where the configuration says that it is.
///
/// # Errors
/// [`CliError::Usage`] if it is missing or invalid. Never holds the token.
pub fn token(
    variable: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<OperatorToken>, CliError> {
    let (text, location) = match (variable, file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(CliError::usage(
                "both server.token_env and server.token_file are set; one place is enough",
            ));
        }
        (Some(name), None) => {
            let location = format!("the environment variable {name}");
            let text = std::env::var(name)
                .map_err(|_| format!("{location} with the operator's token is not set"));
            (text, location)
        }
        (None, Some(path)) => {
            let location = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| {
                format!("the file {location} with the operator's token cannot be read: {error}")
            });
            (text, location)
        }
    };
    OperatorToken::new(&SecretString::from(text.map_err(CliError::usage)?))
        .map(Some)
        .map_err(|error| CliError::usage(format!("{location}: {error}")))
}

/// The token in the data folder, for a server whose configuration names none. The first start makes it, for the
/// owner of the folder only.
///
/// It stays as it is at later starts, so that scripts and collectors of metrics that read it go on working. A start
/// without the file makes another token.
///
/// # Errors
/// [`CliError::Failed`] if the file cannot be read or made, or its content is invalid. Never holds the token.
pub fn token_of_folder(data: &Path) -> Result<OperatorToken, CliError> {
    let path = data.join(TOKEN_FILE);
    let shown = path.display();
    let text = match fs::read_to_string(&path) {
        Ok(text) => SecretString::from(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = random_token()?;
            write(&path, &text).map_err(|error| {
                CliError::failed(format!(
                    "the operator's token cannot be written into {shown}: {error}; make room, or name another file with --token-file"
                ))
            })?;
            output::note(&format!(
                "the operator's token is in {shown}: HTTP asks for it where more than public posts are shown"
            ));
            text
        }
        Err(error) => {
            return Err(CliError::failed(format!(
                "the operator's token in {shown} cannot be read: {error}; remove the file for a new one, or name another with --token-file"
            )));
        }
    };
    OperatorToken::new(&text)
        .map_err(|error| CliError::failed(format!("{shown}: {error}, or remove the file for one")))
}

/// Writes the token into a file that is whole whenever it is there.
fn write(path: &Path, token: &SecretString) -> io::Result<()> {
    let mut part: PathBuf = path.to_owned();
    part.as_mut_os_string().push(".part");
    // What a start that was interrupted left may have another mode.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&part)?;
    writeln!(file, "{}", token.expose_secret())?;
    file.sync_all()?;
    durable::rename(&part, path)
}

fn random_token() -> Result<SecretString, CliError> {
    let mut bytes = [0; 32];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .map_err(|_| CliError::failed("the system has no random numbers"))?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(hex.into())
}

/// The token's file in the data folder.
const TOKEN_FILE: &str = "operator.token";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TOKEN_FILE);
        fs::write(folder.path().join("operator.token.part"), "left behind").unwrap();
        token_of_folder(folder.path()).unwrap();
        let made = fs::read_to_string(&path).unwrap();
        assert_eq!(made.trim().len(), 64);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        token_of_folder(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), made);
        fs::remove_file(&path).unwrap();
        token_of_folder(folder.path()).unwrap();
        assert_ne!(fs::read_to_string(&path).unwrap(), made);
    }

    #[test]
    fn a_file_without_a_good_token_is_an_error_that_does_not_show_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TOKEN_FILE);
        fs::write(&path, "sesame").unwrap();
        let error = token_of_folder(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains(TOKEN_FILE) && !error.contains("sesame"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "sesame");
    }
}
