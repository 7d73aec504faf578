//! How mail to people is sent.

use std::path::Path;

use driftline_server::mail::{MailOptions, MailTransport, Mailer};
use secrecy::SecretString;
use url::Url;

use crate::{config::MailSection, error::CliError};

/// What sends mail: an SMTP server, or files in the data folder.
///
/// # Errors
/// [`CliError::Usage`] if the options are invalid. Never holds the passphrase.
pub fn mailer(
    mail: &MailSection,
    data: &Path,
    public_base: Option<&Url>,
) -> Result<Mailer, CliError> {
    let host = public_base.and_then(Url::host_str).unwrap_or("localhost");
    let by = match server(mail)? {
        None => MailTransport::Folder(data.join(FOLDER)),
        Some(url) => MailTransport::Smtp {
            url,
            passphrase: passphrase(mail)?,
        },
    };
    let from = mail.from.clone();
    let from = from.unwrap_or_else(|| format!("Driftline <driftline@{host}>"));
    Mailer::new(MailOptions { from, by }).map_err(CliError::usage)
}

/// Checks the options without reading the passphrase.
///
/// # Errors
/// [`CliError::Usage`] if they are invalid.
pub fn check(mail: &MailSection) -> Result<(), CliError> {
    let by = match server(mail)? {
        None => MailTransport::Folder(FOLDER.into()),
        Some(url) => MailTransport::Smtp {
            url,
            passphrase: None,
        },
    };
    let from = mail.from.clone();
    let from = from.unwrap_or_else(|| "driftline@localhost".to_owned());
    Mailer::new(MailOptions { from, by })
        .map(|_| ())
        .map_err(CliError::usage)
}

/// Reads the passphrase of the server's user from where the configuration says that it is.
///
/// # Errors
/// [`CliError::Usage`] if it is missing.
pub fn passphrase(mail: &MailSection) -> Result<Option<SecretString>, CliError> {
    match (&mail.passphrase_env, &mail.passphrase_file) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(CliError::usage(
            "both mail.passphrase_env and mail.passphrase_file are set; one place is enough",
        )),
        (Some(name), None) => {
            let text = std::env::var(name).map_err(|_| {
                CliError::usage(format!(
                    "the environment variable {name} with the passphrase for mail is not set"
                ))
            });
            Ok(Some(text?.into()))
        }
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                CliError::usage(format!(
                    "the file {} with the passphrase for mail cannot be read: {error}",
                    path.display()
                ))
            });
            Ok(Some(text?.into()))
        }
    }
}

fn server(mail: &MailSection) -> Result<Option<Url>, CliError> {
    let parsed = mail.smtp.as_deref().map(Url::parse).transpose();
    parsed.map_err(|_| {
        CliError::usage("invalid mail.smtp: expected a URL such as smtps://driftline@mail.example")
    })
}

/// Of a data folder.
const FOLDER: &str = "mail";
