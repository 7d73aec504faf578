//! Pending accounts: sign-ups whose mail address is not verified yet. They do not count as
//! accounts.

use driftline_core::social::{
    AccountName, MailAddress, PassphraseHash, PendingCheck, Role, VerificationDigest,
    VerificationState,
};
use driftline_db::{Column, Row, Tx};

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

/// The number of void pending accounts that are removed at once.
pub const CHUNK: usize = 1_000;

/// A sign-up whose mail address must be verified.
#[derive(Clone, Debug)]
pub struct NewPending {
    /// The requested name.
    pub name: AccountName,
    /// The address to which the state is mailed.
    pub mail: MailAddress,
    /// The passphrase of the future account.
    pub passphrase: PassphraseHash,
    /// The reason for joining.
    pub reason: String,
    /// The language of its pages and mails.
    pub locale: String,
    /// The page of this server that follows its first log-in.
    pub continue_to: Option<String>,
    /// The digest of the mailed random state.
    pub state: VerificationDigest,
}

/// A pending account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingAccount {
    /// Its ID. The account will have another one.
    pub id: LocalId,
    /// The requested name.
    pub name: AccountName,
    /// The address to verify.
    pub mail: MailAddress,
    /// The reason for joining.
    pub reason: String,
    /// The language of its pages and mails.
    pub locale: String,
    /// The page of this server that follows its first log-in.
    pub continue_to: Option<String>,
    /// The time at which it was added, in Unix ms.
    pub created_at_ms: i64,
}

/// The reason why an address was not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotVerified {
    /// The pending account does not exist or has expired, or the state is wrong. The error does not
    /// reveal the case.
    #[error("this link is not valid, or not valid any more; sign up again")]
    Invalid,
    /// Another account has taken its mail address meanwhile.
    #[error(transparent)]
    Taken(AccountTaken),
}

/// A verified sign-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedAccount {
    /// The account.
    pub account: LocalAccount,
    /// The page of this server that follows its first log-in.
    pub continue_to: Option<String>,
}

/// The account in tokens that an app got at a sign-up, before the account exists. They belong to
/// the account from its creation on: see [`local_account::signed_up_as`].
pub fn token_account(pending: LocalId) -> LocalAccountId {
    LocalAccountId::new(pending.raw())
}

/// Adds a pending account, and removes void ones. Its name is reserved until it is void. The result
/// does not reveal accounts with that mail address, because they are notified by mail. Must be
/// written below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn add(
    tx: &mut Tx<'_>,
    new: &NewPending,
    now_ms: i64,
) -> Result<Result<LocalId, AccountTaken>, StoreError> {
    remove_void(tx, now_ms)?;
    if local_account::is_name_taken(tx, &new.name, now_ms)? {
        return Ok(Err(AccountTaken::Name));
    }
    // At most 1,000 void ones were removed above.
    tx.execute_later(
        "delete from pending_account where name_key = $1",
        &[&new.name.key()],
    )?;
    let id = local_ids::take(tx, now_ms, 1)?;
    let (hash, cost) = (&new.passphrase, new.passphrase.cost);
    tx.execute(
        &format!(
            "insert into pending_account (id, name, name_key, mail, mail_key, {}, reason, locale,
                 continue_to, state_digest, created_at_ms)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
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
            &new.continue_to,
            &new.state.0.to_vec(),
            &now_ms,
        ],
    )?;
    Ok(Ok(from_sql(id)?))
}

/// The pending account with a name, with its passphrase; `None` if there is none, or it is void.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn by_name(
    tx: &mut Tx<'_>,
    name: &AccountName,
    now_ms: i64,
) -> Result<Option<(PendingAccount, PassphraseHash)>, StoreError> {
    let query = format!(
        "select {COLUMNS}, {} from pending_account where name_key = $1 and created_at_ms > $2",
        passphrase_columns::COLUMNS
    );
    let found = tx.query_opt(
        &query,
        &[&name.key(), &(now_ms - VerificationDigest::LASTS_MS)],
        |row| Ok((from_row(row), passphrase_columns::from_row(row))),
    )?;
    let found = found.map(|(pending, passphrase)| Ok((pending?, passphrase?)));
    found.transpose()
}

/// Replaces the mail address of a pending account, and the data given with it, by those of `new`,
/// after another sign-up with its name and passphrase. Its time begins again. `verified` is the
/// hash with which the passphrase was compared. Returns `false` if the pending account has gone or
/// has another hash. Must be written below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn correct(
    tx: &mut Tx<'_>,
    pending: LocalId,
    verified: &PassphraseHash,
    new: &NewPending,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let corrected = tx.execute(
        "update pending_account set mail = $3, mail_key = $4, reason = $5, locale = $6,
             continue_to = $7, state_digest = $8, created_at_ms = $9
         where id = $1 and passphrase_hash = $2",
        &[
            &sql(pending),
            &verified.hash,
            &new.mail.as_str(),
            &new.mail.key(),
            &&*without_nul(&new.reason),
            &&*without_nul(&new.locale),
            &new.continue_to,
            &new.state.0.to_vec(),
            &now_ms,
        ],
    )?;
    Ok(corrected > 0)
}

/// Removes the pending account with a name, with the tokens of its app. Returns `false` if there is
/// none. Must be written below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn remove(tx: &mut Tx<'_>, name: &AccountName) -> Result<bool, StoreError> {
    let ids = tx.query(
        "delete from pending_account where name_key = $1 returning id",
        &[&name.key()],
        |row| row.i64("id"),
    )?;
    forget_tokens(tx, &ids)?;
    Ok(!ids.is_empty())
}

/// Removes the tokens that apps got at sign-ups that were never verified.
fn forget_tokens(tx: &mut Tx<'_>, pending: &[i64]) -> Result<(), StoreError> {
    let ids = Column::i64(pending.iter().copied());
    let forget = "delete from access_token where account_id {in $1}";
    if !pending.is_empty() {
        tx.execute(forget, &[&ids])?;
    }
    Ok(())
}

/// Replaces the state of the newest pending account with this address, for another mail; `None` if
/// there is none. Its time continues. Must be written below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
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
        &format!(
            "select {COLUMNS} from pending_account
             where mail_key = $1 and created_at_ms > $2 order by created_at_ms, id"
        ),
        &[&mail.key(), &(now_ms - VerificationDigest::LASTS_MS)],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

/// Verifies the mail address of a pending account, which then becomes an account. Other pending
/// accounts with the same address are removed. A wrong state changes nothing. Must be written below
/// [`local_ids::root`].
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Unreadable`] if a stored
/// value cannot be read; [`StoreError::Db`] if the database fails.
pub fn verify(
    tx: &mut Tx<'_>,
    pending: LocalId,
    presented: Option<&VerificationState>,
    awaits_approval: bool,
    now_ms: i64,
) -> Result<Result<VerifiedAccount, NotVerified>, StoreError> {
    let Some(known) = load(tx, pending)? else {
        return Ok(Err(NotVerified::Invalid));
    };
    let age_ms = now_ms - known.pending.created_at_ms;
    match known.digest.check(presented, age_ms) {
        PendingCheck::Verified => {}
        PendingCheck::Wrong | PendingCheck::Void => return Ok(Err(NotVerified::Invalid)),
    }
    let PendingAccount {
        name,
        mail,
        reason,
        continue_to,
        ..
    } = known.pending;
    let removed = tx.query(
        "delete from pending_account where id = $1 or mail_key = $2 returning id",
        &[&sql(pending), &mail.key()],
        |row| row.i64("id"),
    )?;
    let others: Vec<i64> = removed
        .into_iter()
        .filter(|id| *id != sql(pending))
        .collect();
    forget_tokens(tx, &others)?;
    let new = NewAccount {
        name,
        mail,
        passphrase: known.passphrase,
        role: Role::Member,
        awaits_approval,
        reason,
    };
    let account = match local_account::create_from(tx, Some(pending), &new, now_ms)? {
        Ok(account) => account,
        Err(taken) => return Ok(Err(NotVerified::Taken(taken))),
    };
    tx.execute(
        "update access_token set account_id = $2 where account_id = $1",
        &[&sql(pending), &sql(account.id)],
    )?;
    Ok(Ok(VerifiedAccount {
        account,
        continue_to,
    }))
}

/// The pending accounts that are not void, in order of their IDs.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn list(tx: &mut Tx<'_>, now_ms: i64) -> Result<Vec<PendingAccount>, StoreError> {
    let rows = tx.query(
        &format!("select {COLUMNS} from pending_account where created_at_ms > $1 order by id"),
        &[&(now_ms - VerificationDigest::LASTS_MS)],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

/// Removes expired pending accounts, with the tokens of their apps. Returns their number, at most
/// [`CHUNK`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn remove_void(tx: &mut Tx<'_>, now_ms: i64) -> Result<usize, StoreError> {
    let removed = tx.query(
        "delete from pending_account where id in
             (select id from pending_account where created_at_ms <= $1
              order by created_at_ms limit $2)
         returning id",
        &[&(now_ms - VerificationDigest::LASTS_MS), &(CHUNK as i64)],
        |row| row.i64("id"),
    )?;
    forget_tokens(tx, &removed)?;
    Ok(removed.len())
}

struct KnownPending {
    pending: PendingAccount,
    passphrase: PassphraseHash,
    digest: VerificationDigest,
}

fn load(tx: &mut Tx<'_>, pending: LocalId) -> Result<Option<KnownPending>, StoreError> {
    let query = format!(
        "select {COLUMNS}, state_digest, {} from pending_account where id = $1",
        passphrase_columns::COLUMNS
    );
    let found = tx.query_opt(&query, &[&sql(pending)], |row| Ok(known(row)))?;
    found.transpose()
}

fn known(row: &Row<'_>) -> Result<KnownPending, StoreError> {
    let digest = row.bytes("state_digest")?.try_into();
    let digest =
        digest.map_err(|_| StoreError::unreadable("a state's digest", &"one of another length"))?;
    Ok(KnownPending {
        pending: from_row(row)?,
        passphrase: passphrase_columns::from_row(row)?,
        digest: VerificationDigest(digest),
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
        continue_to: row.opt_text("continue_to")?,
        created_at_ms: row.i64("created_at_ms")?,
    })
}

const COLUMNS: &str = "id, name, mail, reason, locale, continue_to, created_at_ms";
