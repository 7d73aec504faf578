//! Pending accounts: sign-ups whose mail address is not verified yet. They are no accounts.

use driftline_core::social::{
    AccountName, MailAddress, PassphraseHash, PendingCheck, Role, VerificationDigest,
    VerificationState,
};
use driftline_db::{DbError, Row, Tx};

use super::{
    local_account::{self, AccountTaken, LocalAccount, NewAccount},
    passphrase_columns,
};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, from_sql, sql},
    local_ids,
    text::without_nul,
};

/// A sign-up whose mail address is to be verified.
#[derive(Clone, Debug)]
pub struct NewPending {
    /// The name that it asks for.
    pub name: AccountName,
    /// The address that the state is mailed to.
    pub mail: MailAddress,
    /// The passphrase that it will have.
    pub passphrase: PassphraseHash,
    /// Why it wants to be here.
    pub reason: String,
    /// The language of its pages and mails.
    pub locale: String,
    /// Of the random state that is mailed.
    pub state: VerificationDigest,
}

/// A pending account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingAccount {
    /// Its ID, which the account will have.
    pub id: LocalId,
    /// The name that it asks for.
    pub name: AccountName,
    /// The address that is to be verified.
    pub mail: MailAddress,
    /// Why it wants to be here.
    pub reason: String,
    /// The language of its pages and mails.
    pub locale: String,
    /// When it was added, Unix ms.
    pub created_at_ms: i64,
}

/// Why an address was not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotVerified {
    /// There is no such pending account, its time or its attempts are over, or the state is another one:
    /// which of them is not told.
    #[error("this link is not valid, or not valid any more; sign up again")]
    Invalid,
    /// Another account has taken its mail address meanwhile.
    #[error(transparent)]
    Taken(AccountTaken),
}

/// The ID that the account of a pending one will have: tokens that an app was given at the sign-up are the
/// account's from then on.
pub fn account_id(pending: LocalId) -> LocalAccountId {
    LocalAccountId::new(pending.raw())
}

/// Adds a pending account, and removes void ones. Its name is held for it until it is void. Says nothing of
/// accounts with that mail address: they are told by mail. To be written below [`local_ids::root`].
pub fn add(
    tx: &mut Tx<'_>,
    new: &NewPending,
    now_ms: i64,
) -> Result<Result<LocalId, AccountTaken>, StoreError> {
    remove_void(tx, now_ms)?;
    if local_account::is_name_taken(tx, &new.name, now_ms)? {
        return Ok(Err(AccountTaken::Name));
    }
    // One that has had all its attempts is void before its time.
    tx.execute_later(
        "delete from pending_account where name_key = $1",
        &[&new.name.key()],
    )?;
    let id = local_ids::take(tx, now_ms, 1)?;
    let (hash, cost) = (&new.passphrase, new.passphrase.cost);
    tx.execute(
        &format!(
            "insert into pending_account (id, name, name_key, mail, mail_key, {}, reason, locale,
                 state_digest, attempts, created_at_ms)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, $15)",
            passphrase_columns::COLUMNS
        ),
        &[
            &id,
            &new.name.as_str(),
            &new.name.key(),
            &new.mail.as_str(),
            &new.mail.key(),
            &hash.hash,
            &hash.salt.to_vec(),
            &i64::from(cost.memory_kib),
            &i64::from(cost.passes),
            &i64::from(cost.lanes),
            &hash.normalization,
            &&*without_nul(&new.reason),
            &&*without_nul(&new.locale),
            &new.state.0.to_vec(),
            &now_ms,
        ],
    )?;
    Ok(Ok(from_sql(id)?))
}

/// Replaces the state of the newest pending account with that address, to be mailed again; `None` if there is
/// none. Its time and its attempts go on. To be written below [`local_ids::root`].
pub fn renew(
    tx: &mut Tx<'_>,
    mail: &MailAddress,
    state: &VerificationDigest,
    now_ms: i64,
) -> Result<Option<PendingAccount>, StoreError> {
    let pending = list_by_mail(tx, mail, now_ms)?.pop();
    if let Some(pending) = &pending {
        tx.execute_later(
            "update pending_account set state_digest = $2 where id = $1",
            &[&sql(pending.id), &state.0.to_vec()],
        )?;
    }
    Ok(pending)
}

fn list_by_mail(
    tx: &mut Tx<'_>,
    mail: &MailAddress,
    now_ms: i64,
) -> Result<Vec<PendingAccount>, StoreError> {
    let rows = tx.query(
        "select id, name, mail, reason, locale, created_at_ms from pending_account
         where mail_key = $1 and created_at_ms > $2 and attempts < $3 order by id",
        &[
            &mail.key(),
            &(now_ms - VerificationDigest::LASTS_MS),
            &VerificationDigest::MAX_ATTEMPTS,
        ],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

/// Verifies the mail address of a pending account, which becomes an account then; others that were to
/// verify the same address are removed. A wrong state is an attempt more; they are counted one by one. To be written below
/// [`local_ids::root`].
pub fn verify(
    tx: &mut Tx<'_>,
    pending: LocalId,
    presented: Option<&VerificationState>,
    awaits_approval: bool,
    now_ms: i64,
) -> Result<Result<LocalAccount, NotVerified>, StoreError> {
    let Some(known) = load(tx, pending)? else {
        return Ok(Err(NotVerified::Invalid));
    };
    let age_ms = now_ms - known.pending.created_at_ms;
    match known.digest.check(presented, age_ms, known.attempts) {
        PendingCheck::Verified => {}
        PendingCheck::Wrong => {
            tx.execute(
                "update pending_account set attempts = attempts + 1 where id = $1",
                &[&sql(pending)],
            )?;
            return Ok(Err(NotVerified::Invalid));
        }
        PendingCheck::Void => return Ok(Err(NotVerified::Invalid)),
    }
    let PendingAccount {
        name, mail, reason, ..
    } = known.pending;
    tx.execute_later(
        "delete from pending_account where id = $1 or mail_key = $2",
        &[&sql(pending), &mail.key()],
    )?;
    let new = NewAccount {
        name,
        mail,
        passphrase: known.passphrase,
        role: Role::Member,
        awaits_approval,
        reason,
    };
    let created = local_account::create_from_pending(tx, account_id(pending), &new, now_ms)?;
    Ok(created.map_err(NotVerified::Taken))
}

/// The pending accounts that are not void, in order of their IDs.
pub fn list(tx: &mut Tx<'_>, now_ms: i64) -> Result<Vec<PendingAccount>, StoreError> {
    let rows = tx.query(
        "select id, name, mail, reason, locale, created_at_ms from pending_account
         where created_at_ms > $1 and attempts < $2 order by id",
        &[
            &(now_ms - VerificationDigest::LASTS_MS),
            &VerificationDigest::MAX_ATTEMPTS,
        ],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

/// Removes the pending accounts whose time is over; returns how many, at most 1,000.
pub fn remove_void(tx: &mut Tx<'_>, now_ms: i64) -> Result<u64, StoreError> {
    Ok(tx.execute(
        "delete from pending_account where id in
             (select id from pending_account where created_at_ms <= $1
              order by created_at_ms limit 1000)",
        &[&(now_ms - VerificationDigest::LASTS_MS)],
    )?)
}

/// Whether a pending account that is not void holds a name.
pub(super) fn holds_name(tx: &mut Tx<'_>, key: &str, now_ms: i64) -> Result<bool, DbError> {
    let found = tx.query_opt(
        "select id from pending_account
         where name_key = $1 and created_at_ms > $2 and attempts < $3",
        &[
            &key,
            &(now_ms - VerificationDigest::LASTS_MS),
            &VerificationDigest::MAX_ATTEMPTS,
        ],
        |row| row.i64("id"),
    )?;
    Ok(found.is_some())
}

struct Known {
    pending: PendingAccount,
    passphrase: PassphraseHash,
    digest: VerificationDigest,
    attempts: i64,
}

fn load(tx: &mut Tx<'_>, pending: LocalId) -> Result<Option<Known>, StoreError> {
    let query = format!(
        "select id, name, mail, reason, locale, created_at_ms, state_digest, attempts, {}
         from pending_account where id = $1",
        passphrase_columns::COLUMNS
    );
    let found = tx.query_opt(&query, &[&sql(pending)], |row| Ok(known(row)))?;
    found.transpose()
}

fn known(row: &Row<'_>) -> Result<Known, StoreError> {
    let digest = row.bytes("state_digest")?.try_into();
    let digest =
        digest.map_err(|_| StoreError::unreadable("a state's digest", &"one of another length"))?;
    Ok(Known {
        pending: from_row(row)?,
        passphrase: passphrase_columns::from_row(row)?,
        digest: VerificationDigest(digest),
        attempts: row.i64("attempts")?,
    })
}

fn from_row(row: &Row<'_>) -> Result<PendingAccount, StoreError> {
    let name = AccountName::new(row.str("name")?);
    let mail = MailAddress::new(row.str("mail")?);
    Ok(PendingAccount {
        id: from_sql(row.i64("id")?)?,
        name: name.map_err(|error| StoreError::unreadable("an account's name", &error))?,
        mail: mail.map_err(|error| StoreError::unreadable("a mail address", &error))?,
        reason: row.text("reason")?,
        locale: row.text("locale")?,
        created_at_ms: row.i64("created_at_ms")?,
    })
}
