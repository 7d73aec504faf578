//! Mail to people: through SMTP, or into a folder.
//!
//! Whoever causes a mail does not wait for it, and learns nothing of it: what fails is in the log, without
//! addresses and texts. A mail that a server may take later is sent again for some hours, as long as the process runs.

mod folder;
mod outbox;

use std::{net::IpAddr, path::PathBuf, sync::Arc};

use driftline_api::people::{Mail, MailPort};
use futures_util::future::BoxFuture;
use lettre::{
    AsyncSmtpTransport, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use folder::Folder;
use outbox::Outbox;

/// How mail is sent.
#[derive(Clone, Debug)]
pub struct MailOptions {
    /// The sender, as `Name <name@host>` or `name@host`.
    pub from: String,
    /// By what.
    pub by: MailTransport,
}

/// By what mail is sent.
#[derive(Clone, Debug)]
pub enum MailTransport {
    /// A file for each, `*.eml`, in that folder.
    Folder(PathBuf),
    /// An SMTP server.
    Smtp {
        /// `smtps://USER@HOST` or `smtp://USER@HOST`, the latter by STARTTLS, or plain on this machine.
        url: Url,
        /// The user's passphrase.
        passphrase: Option<SecretString>,
    },
}

/// Why mail cannot be sent at all. Never holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum MailOptionsError {
    /// The sender is no address.
    #[error("invalid sender of mail: expected `name@host` or `Name <name@host>`")]
    Sender,
    /// The server's address is invalid.
    #[error(
        "invalid address of the SMTP server: expected smtps://USER@HOST[:PORT], or smtp://USER@HOST[:PORT] for STARTTLS"
    )]
    Server,
    /// TLS cannot be set up.
    #[error("the SMTP server cannot be used: {0}")]
    Transport(#[from] lettre::transport::smtp::Error),
}

/// Sends mail.
#[derive(Clone, Debug)]
pub struct Mailer {
    from: Mailbox,
    by: By,
}

#[derive(Clone, Debug)]
enum By {
    Folder(Arc<Folder>),
    Smtp(Arc<Outbox>),
}

impl Mailer {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// [`MailOptionsError`] if the options are invalid.
    pub fn new(options: MailOptions) -> Result<Self, MailOptionsError> {
        let from = options.from.parse();
        Ok(Self {
            from: from.map_err(|_| MailOptionsError::Sender)?,
            by: match options.by {
                MailTransport::Folder(folder) => By::Folder(Arc::new(Folder::new(folder))),
                MailTransport::Smtp { url, passphrase } => {
                    By::Smtp(Arc::new(Outbox::new(smtp(url, passphrase)?)))
                }
            },
        })
    }

    /// Connects to the SMTP server, if there is one, and logs what is wrong.
    pub async fn check(self) {
        if let By::Smtp(outbox) = self.by {
            outbox.check().await;
        }
    }

    async fn deliver(self, mail: Mail) {
        let to = match mail.to.parse() {
            Ok(to) => Mailbox::new(None, to),
            Err(_) => return tracing::warn!("a mail is not sent: its address cannot be mailed to"),
        };
        let message = Message::builder()
            .from(self.from)
            .to(to)
            .subject(mail.subject)
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text);
        let message = match message {
            Ok(message) => message,
            Err(_) => return tracing::error!("a mail could not be made"),
        };
        match self.by {
            By::Folder(folder) => folder.deliver(message.formatted()).await,
            By::Smtp(outbox) => outbox.deliver(message).await,
        }
    }
}

impl MailPort for Mailer {
    fn send(&self, mail: Mail) -> BoxFuture<'static, ()> {
        Box::pin(self.clone().deliver(mail))
    }
}

fn smtp(
    mut url: Url,
    passphrase: Option<SecretString>,
) -> Result<AsyncSmtpTransport<Tokio1Executor>, MailOptionsError> {
    let host = url.host_str().filter(|host| !host.is_empty());
    let is_here = is_this_machine(host.ok_or(MailOptionsError::Server)?);
    let tls = match url.scheme() {
        "smtps" => None,
        "smtp" if is_here => Some("tls=opportunistic"),
        "smtp" => Some("tls=required"),
        _ => return Err(MailOptionsError::Server),
    };
    if url.password().is_some() || url.query().is_some() {
        return Err(MailOptionsError::Server);
    }
    url.set_query(tls);
    if let Some(passphrase) = passphrase {
        let set = url.set_password(Some(passphrase.expose_secret().trim()));
        set.map_err(|()| MailOptionsError::Server)?;
    }
    Ok(AsyncSmtpTransport::<Tokio1Executor>::from_url(url.as_str())?.build())
}

/// Whether a host of a URL is this machine. In a URL of such a scheme also an IP address is a name.
fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let address: Result<IpAddr, _> = address.parse();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(from: &str, url: &str) -> Result<Mailer, MailOptionsError> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Mailer::new(MailOptions {
            from: from.to_owned(),
            by: MailTransport::Smtp {
                url: Url::parse(url).unwrap(),
                passphrase: Some("s3cret passphrase".to_owned().into()),
            },
        })
    }

    #[test]
    fn only_this_machine_may_be_spoken_to_without_tls() {
        for (url, is_here) in [
            ("smtp://127.0.0.1:1025", true),
            ("smtp://ann@[::1]", true),
            ("smtp://LocalHost", true),
            ("smtp://192.0.2.1", false),
            ("smtp://[2001:db8::1]", false),
            ("smtp://127.0.0.1.mail.example", false),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(is_this_machine(url.host_str().unwrap()), is_here, "{url}");
        }
    }

    #[test]
    fn servers_and_senders_are_checked_and_secrets_do_not_show() {
        let from = "Driftline <driftline@drift.example>";
        for good in [
            "smtps://ann@mail.example",
            "smtp://ann@mail.example:587",
            "smtp://127.0.0.1:1025",
        ] {
            let mailer = made(from, good).unwrap();
            assert!(!format!("{mailer:?}").contains("s3cret"), "{good}");
        }
        for bad in [
            "http://mail.example",
            "smtp:mail",
            "smtps://ann:secret@mail.example",
            "smtp://mail.example?tls=none",
        ] {
            let error = made(from, bad).unwrap_err().to_string();
            assert!(
                !error.contains("s3cret") && !error.contains("secret@"),
                "{error}"
            );
        }
        assert!(matches!(
            made("nobody", "smtp://localhost"),
            Err(MailOptionsError::Sender)
        ));
    }
}
