//! Signing up, by our page or by an app.
//!
//! Nobody learns whether a mail address is known: the answer is the same, and what differs is in the mail.
//! A name is held for whoever asked first, whatever their address, so that a name that is still free tells
//! nothing of an address either.

use std::net::IpAddr;

use axum::http::{HeaderMap, header::HOST};
use driftline_core::social::{
    AccountName, AccountState, MailAddress, Passphrase, PassphraseError, VerificationState,
};
use driftline_store::{
    LocalAccountId, LocalId, StoreError, Tx, local_ids,
    social::{
        local_account::{self, AccountTaken},
        pending_account::{self, NewPending, NotVerified, PendingAccount, VerifiedAccount},
    },
};
use secrecy::{ExposeSecret as _, SecretString};

use crate::{
    App,
    auth::{Verified, is_own_name, network, opaque_secret::fill_random},
    pages::language::Language,
    people::{Mail, SignUpMode},
    transport::ApiError,
};

/// What somebody signs up with.
#[derive(Debug)]
pub(crate) struct SignUpRequest {
    pub(crate) name: String,
    pub(crate) mail: String,
    pub(crate) passphrase: SecretString,
    pub(crate) reason: String,
    pub(crate) language: Language,
    /// The page of ours that the person came from and goes back to.
    pub(crate) continue_to: Option<String>,
}

/// What is wrong with a sign-up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) name: Option<NameFault>,
    pub(crate) mail: bool,
    pub(crate) passphrase: Option<PassphraseError>,
    pub(crate) reason: bool,
}

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameFault {
    Invalid,
    Taken,
}

/// Signs somebody up; returns what tokens of the sign-up name. The passphrase is hashed and a mail sent
/// whatever the store says.
///
/// Whoever signs up again with the name and the passphrase of a sign-up that is not verified corrects its mail
/// address.
pub(crate) async fn sign_up(
    app: &App,
    headers: &HeaderMap,
    address: IpAddr,
    request: SignUpRequest,
) -> Result<Result<LocalAccountId, Faults>, ApiError> {
    let people = &app.people;
    let mode = people.sign_up.mode;
    if mode == SignUpMode::Closed {
        return Err(ApiError::Forbidden(CLOSED));
    }
    let reason = request.reason.trim().to_owned();
    let name = AccountName::new(request.name.trim());
    let mail = MailAddress::new(request.mail.trim());
    let passphrase = Passphrase::choose(&request.passphrase);
    let faults = Faults {
        name: name.is_err().then_some(NameFault::Invalid),
        mail: mail.is_err(),
        passphrase: passphrase.as_ref().err().copied(),
        reason: (mode == SignUpMode::Approval && reason.is_empty())
            || reason.chars().count() > MAX_REASON,
    };
    let (Ok(name), Ok(mail), Ok(passphrase), false) = (name, mail, passphrase, faults.reason)
    else {
        return Ok(Err(faults));
    };
    let base = mail_base(app, headers)?;
    people.count_registration(address)?;
    people.count_mail_sender(address)?;
    let now_ms = people.now_ms();
    let wanted = name.clone();
    let same_name = move |tx: &mut Tx<'_>| pending_account::by_name(tx, &wanted, now_ms);
    let same_name = app.store.read(same_name).await?;
    // Guesses at the passphrase of a sign-up are counted as those of a log-in are.
    let mut corrected = None;
    let hash = match same_name {
        Some((pending, stored)) => {
            let (key, address) = (name.key(), network(address));
            people.log_ins.begin(&key, address, None).await?;
            let verified = people.hasher.verify(passphrase, Some(stored.clone()));
            if verified.await? == Verified::Wrong {
                return Ok(Err(name_taken()));
            }
            people.log_ins.succeeded(&key, address, None);
            corrected = Some(pending.id);
            stored
        }
        None => people.hasher.hash(passphrase).await?,
    };
    // Whoever asks is not told: it would tell who signed up with that address lately.
    let may_mail = people.sign_up.without_mail || people.count_mail(&mail).is_ok();
    if let (Some(pending), false) = (corrected, may_mail) {
        // The link that was mailed before stays good.
        return Ok(Ok(pending_account::token_account(pending)));
    }
    let state = new_state()?;
    let new = NewPending {
        name: name.clone(),
        mail: mail.clone(),
        passphrase: hash,
        reason,
        locale: request.language.tag().to_owned(),
        continue_to: request.continue_to,
        state: state.digest(),
    };
    let verified = people.sign_up.without_mail.then(|| state.text());
    let add = move |tx: &mut Tx<'_>| {
        let known = local_account::by_mail(tx, &new.mail)?;
        let pending = match corrected {
            Some(id) if pending_account::correct(tx, id, &new.passphrase, &new, now_ms)? => id,
            _ => match pending_account::add(tx, &new, now_ms)? {
                Ok(pending) => pending,
                Err(taken) => return Ok(Err(taken)),
            },
        };
        let mut named = pending_account::token_account(pending);
        if let Some(state) = &verified {
            let created = verify(tx, pending, state, false, now_ms)?;
            if let Ok(VerifiedAccount { account, .. }) = created {
                // The address is not asked, so that the account is there at once.
                let active = AccountState::Active;
                let _ = local_account::change_state(tx, account.id, active)?;
                named = account.id;
            }
        }
        Ok::<_, StoreError>(Ok((pending, named, known)))
    };
    let (pending, named, known) = match app.store.write(local_ids::root(), add).await? {
        Ok(added) => added,
        // Of the two it can only be the name.
        Err(AccountTaken::Name | AccountTaken::Mail) => {
            return Ok(Err(name_taken()));
        }
    };
    if may_mail && !people.sign_up.without_mail {
        let mail = match known {
            // As it was verified: another writing of the address may be another mailbox.
            Some(known) => known_mail(&base, request.language, &known.mail),
            None => confirm_mail(
                &base,
                request.language,
                &mail,
                name.as_str(),
                pending,
                &state,
            ),
        };
        tokio::spawn(people.mail.send(mail));
    }
    Ok(Ok(named))
}

fn name_taken() -> Faults {
    Faults {
        name: Some(NameFault::Taken),
        ..Faults::default()
    }
}

/// Sends the mail of a pending account again, with a new state, to the address that it signed up with: what is
/// typed here may be another writing of it, and another mailbox. The answer does not tell whether there is one.
pub(crate) async fn resend(
    app: &App,
    headers: &HeaderMap,
    address: IpAddr,
    mail: &str,
) -> Result<(), ApiError> {
    let people = &app.people;
    if people.sign_up.mode == SignUpMode::Closed {
        return Err(ApiError::Forbidden(CLOSED));
    }
    let base = mail_base(app, headers)?;
    people.count_registration(address)?;
    people.count_mail_sender(address)?;
    let Ok(mail) = MailAddress::new(mail.trim()) else {
        return Ok(());
    };
    if people.count_mail(&mail).is_err() {
        return Ok(());
    }
    let state = new_state()?;
    let (digest, now_ms, to) = (state.digest(), people.now_ms(), mail.clone());
    let renew = move |tx: &mut Tx<'_>| {
        // Nothing is mailed to an account's address again: it was told once.
        match local_account::by_mail(tx, &to)? {
            Some(_) => Ok(None),
            None => pending_account::renew(tx, &to, &digest, now_ms),
        }
    };
    let renewed: Option<PendingAccount> = app.store.write(local_ids::root(), renew).await?;
    if let Some(PendingAccount {
        id,
        name,
        mail,
        locale,
        ..
    }) = renewed
    {
        let language = Language::of_tag(&locale).unwrap_or(Language::English);
        let mail = confirm_mail(&base, language, &mail, name.as_str(), id, &state);
        tokio::spawn(people.mail.send(mail));
    }
    Ok(())
}

/// Confirms the address of a pending account, by what was mailed. Wrong tries count as sign-ups of their network
/// address do, and do nothing to the pending account.
pub(crate) async fn confirm(
    app: &App,
    address: IpAddr,
    pending: LocalId,
    state: SecretString,
) -> Result<Result<VerifiedAccount, NotVerified>, ApiError> {
    let people = &app.people;
    people.count_registration(address)?;
    let awaits_approval = people.sign_up.mode != SignUpMode::Open;
    let now_ms = people.now_ms();
    let verify = move |tx: &mut Tx<'_>| verify(tx, pending, &state, awaits_approval, now_ms);
    let verified = app.store.write(local_ids::root(), verify).await?;
    if verified.is_ok() {
        people.take_back_registration(address);
    }
    Ok(verified)
}

fn verify(
    tx: &mut Tx<'_>,
    pending: LocalId,
    state: &SecretString,
    awaits_approval: bool,
    now_ms: i64,
) -> Result<Result<VerifiedAccount, NotVerified>, StoreError> {
    let presented = VerificationState::parse(state);
    pending_account::verify(tx, pending, presented.as_ref(), awaits_approval, now_ms)
}

fn new_state() -> Result<VerificationState, ApiError> {
    let mut random = [0; 32];
    fill_random(&mut random)?;
    Ok(VerificationState::new(random))
}

/// What links in mails begin with. A client names any host, so without a configured address only this
/// machine's own names are good.
fn mail_base(app: &App, headers: &HeaderMap) -> Result<String, ApiError> {
    if let Some(base) = &app.public_base {
        return Ok(base.as_str().trim_end_matches('/').to_owned());
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let own = host.filter(|host| is_own_name(host, None));
    own.map(|host| format!("http://{host}")).ok_or_else(|| {
        tracing::error!(
            "nobody can sign up: server.public_url is not set, so mails cannot link here"
        );
        ApiError::Internal
    })
}

fn confirm_mail(
    base: &str,
    language: Language,
    to: &MailAddress,
    name: &str,
    pending: LocalId,
    state: &VerificationState,
) -> Mail {
    let (texts, state) = (language.texts(), state.text());
    let query = format!("id={pending}&state={}", state.expose_secret());
    let link = format!("{base}/confirm?{query}&lang={}", language.tag());
    let text = texts.confirm_mail.replace("{name}", name);
    mail(to, texts.confirm_subject, &text, base, &link)
}

fn known_mail(base: &str, language: Language, to: &MailAddress) -> Mail {
    let texts = language.texts();
    let link = format!("{base}/log-in?lang={}", language.tag());
    mail(to, texts.known_subject, texts.known_mail, base, &link)
}

fn mail(to: &MailAddress, subject: &str, text: &str, base: &str, link: &str) -> Mail {
    Mail {
        to: to.as_str().to_owned(),
        subject: subject.to_owned(),
        text: text.replace("{server}", base).replace("{link}", link),
    }
}

const CLOSED: &str = "Sign-ups are closed";
const MAX_REASON: usize = 500;
