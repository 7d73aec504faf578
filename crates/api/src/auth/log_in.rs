//! Logging in with a passphrase, by name or by mail address.
//!
//! Whoever does not know the passphrase learns nothing: an unknown account gives the answer of a wrong
//! passphrase, after the same hash, and is throttled as known ones are.

use std::net::IpAddr;

use driftline_core::social::{AccountName, LogInRefused, MailAddress, Passphrase};
use driftline_store::{
    LocalAccountId, StoreError, Tx,
    social::local_account::{self, LocalAccount, LogInFailed as NoLogIn},
};
use secrecy::SecretString;

use super::{HashError, KnownDevice, TooEarly, Verified, network, seconds};
use crate::{App, transport::ApiError};

/// Why somebody is not logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogInFailed {
    /// There is no such account, or the passphrase is wrong.
    Wrong,
    /// It was tried too often; how long to wait, s.
    TooEarly(i64),
    /// The passphrase is right, and the account may not log in.
    Refused(LogInRefused),
}

impl From<TooEarly> for LogInFailed {
    fn from(early: TooEarly) -> Self {
        Self::TooEarly(seconds(early))
    }
}

impl From<LogInFailed> for ApiError {
    fn from(failed: LogInFailed) -> Self {
        match failed {
            LogInFailed::Wrong => Self::WrongPassphrase,
            LogInFailed::TooEarly(retry_after_s) => Self::TooManyRequests { retry_after_s },
            LogInFailed::Refused(LogInRefused::AwaitsApproval) => {
                Self::LogInDisabled("Your login is currently pending approval")
            }
            LogInFailed::Refused(LogInRefused::Frozen) => {
                Self::LogInDisabled("Your login is currently disabled")
            }
        }
    }
}

impl From<HashError> for ApiError {
    fn from(error: HashError) -> Self {
        if error == HashError::Busy {
            return Self::TooManyRequests { retry_after_s: 2 };
        }
        tracing::error!(%error, "a passphrase was not checked");
        Self::Internal
    }
}

/// Checks a passphrase, and records the log-in, together with what `give` stores for the account: if the
/// passphrase is replaced or the account frozen meanwhile, either nothing was given, or it is found and revoked.
/// `device` is the browser, if somebody has logged in there before.
pub(crate) async fn log_in<T: Send + 'static>(
    app: &App,
    who: &str,
    passphrase: &SecretString,
    (address, device): (IpAddr, Option<&KnownDevice>),
    give: impl FnMut(&mut Tx<'_>, LocalAccountId) -> Result<T, StoreError> + Send + 'static,
) -> Result<Result<(LocalAccount, T), LogInFailed>, ApiError> {
    let people = &app.people;
    let who = Who::parse(who);
    let key = who.key();
    let find = move |tx: &mut Tx<'_>| {
        let account = match &who {
            Who::Name(name) => local_account::by_name(tx, name)?,
            Who::Mail(mail) => local_account::by_mail(tx, mail)?,
            Who::Nobody(_) => None,
        };
        let Some(account) = account else {
            return Ok(None);
        };
        let stored = local_account::passphrase(tx, account.id)?;
        Ok::<_, StoreError>(stored.map(|stored| (account, stored)))
    };
    let (account, stored) = app.store.read(find).await?.unzip();
    let address = network(address);
    let is_owners = |device: &&KnownDevice| {
        let account = account.as_ref();
        account.is_some_and(|account| account.id == device.account)
    };
    let device = device.filter(is_owners);
    if let Err(early) = people.log_ins.begin(&key, address, device).await {
        return Ok(Err(early.into()));
    }
    let verified = people
        .hasher
        .verify(Passphrase::present(passphrase), stored.clone());
    let (Verified::Right { rehashed }, Some((account, stored))) =
        (verified.await?, account.zip(stored))
    else {
        return Ok(Err(LogInFailed::Wrong));
    };
    people.log_ins.succeeded(&key, address, device);
    let now_ms = people.now_ms();
    let (id, root) = (account.id, local_account::root(account.id));
    let mut give = give;
    let record = move |tx: &mut Tx<'_>| match local_account::log_in(
        tx,
        id,
        &stored,
        rehashed.as_ref(),
        now_ms,
    )? {
        Ok(state) => Ok::<_, StoreError>(Ok((state, give(tx, id)?))),
        Err(refused) => Ok(Err(refused)),
    };
    Ok(match app.store.write(root, record).await? {
        Ok((state, given)) => Ok((LocalAccount { state, ..account }, given)),
        Err(NoLogIn::PassphraseChanged) => Err(LogInFailed::Wrong),
        Err(NoLogIn::Refused(refused)) => Err(LogInFailed::Refused(refused)),
    })
}

/// Whom a log-in names.
enum Who {
    Name(AccountName),
    Mail(MailAddress),
    Nobody(String),
}

impl Who {
    fn parse(text: &str) -> Self {
        let text = text.trim();
        if let Ok(name) = AccountName::new(text.strip_prefix('@').unwrap_or(text)) {
            return Self::Name(name);
        }
        match MailAddress::new(text) {
            Ok(mail) => Self::Mail(mail),
            Err(_) => Self::Nobody(text.chars().take(64).collect()),
        }
    }

    fn key(&self) -> String {
        match self {
            Self::Name(name) => name.key(),
            Self::Mail(mail) => mail.key(),
            Self::Nobody(text) => text.to_lowercase(),
        }
    }
}
