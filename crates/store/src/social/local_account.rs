//! Accounts of this server.

use driftline_core::social::{
    AccountName, AccountState, LogInRefused, MailAddress, Nickname, PassphraseHash, Profile, Role,
    StateChangeError, VerificationDigest,
};
use driftline_db::{Column, DbError, Root, Row, ToValue, Tx};
use serde::{Deserialize, Serialize};

use super::{parsed, passphrase_columns, profile};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, LocalId, from_sql, local_account_id, sql},
    library, local_ids,
    text::without_nul,
};

/// The root of writes to an account and its data.
pub fn root(account: LocalAccountId) -> Root {
    Root::row("local_account", "id", sql(account))
}

/// An account of this server. Its profile and its passphrase are stored separately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalAccount {
    /// Its ID.
    pub id: LocalAccountId,
    /// Its name.
    pub name: AccountName,
    /// The display name; empty at first.
    pub nickname: Nickname,
    /// Its state.
    pub state: AccountState,
    /// True if it must be approved before its first log-in.
    pub awaits_approval: bool,
    /// Its role.
    pub role: Role,
    /// Its mail address.
    pub mail: MailAddress,
    /// The time at which the address was verified, in Unix ms.
    pub mail_verified_at_ms: i64,
    /// The time of its creation, in Unix ms.
    pub created_at_ms: i64,
    /// The time at which its passphrase was last presented, in Unix ms.
    pub last_login_at_ms: Option<i64>,
    /// The reason for joining that was given at the sign-up.
    pub reason: String,
    /// The operator's permission to show its sources to the world.
    pub may_publish: bool,
}

/// An account to create, whose mail address is verified.
#[derive(Clone, Debug)]
pub struct NewAccount {
    /// Its name.
    pub name: AccountName,
    /// Its mail address.
    pub mail: MailAddress,
    /// Its passphrase.
    pub passphrase: PassphraseHash,
    /// Its role.
    pub role: Role,
    /// True if it must be approved.
    pub awaits_approval: bool,
    /// The reason for joining.
    pub reason: String,
}

/// The reason why an account was not created, or not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountTaken {
    /// Another account, or a pending one, has the name, possibly in another case.
    #[error("an account, or a sign-up that is not verified yet, has that name; choose another one")]
    Name,
    /// Another account has the mail address. This must not be revealed to strangers.
    #[error("another account has that mail address")]
    Mail,
}

/// The reason why a log-in with the right passphrase is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogInFailed {
    /// The account may not log in.
    #[error(transparent)]
    Refused(#[from] LogInRefused),
    /// The passphrase was replaced after it was read for the comparison, so it is not right any
    /// more.
    #[error("the passphrase was changed meanwhile")]
    PassphraseChanged,
}

/// Creates an account that is not activated, with an empty profile and an empty library. Must be
/// written below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Unreadable`] if a stored
/// value cannot be read; [`StoreError::Db`] if the database fails.
pub fn create(
    tx: &mut Tx<'_>,
    new: &NewAccount,
    now_ms: i64,
) -> Result<Result<LocalAccount, AccountTaken>, StoreError> {
    create_from(tx, None, new, now_ms)
}

/// The same for a pending account, if there is one, whose name is free by now.
pub(super) fn create_from(
    tx: &mut Tx<'_>,
    pending: Option<LocalId>,
    new: &NewAccount,
    now_ms: i64,
) -> Result<Result<LocalAccount, AccountTaken>, StoreError> {
    if is_name_taken(tx, &new.name, now_ms)? {
        return Ok(Err(AccountTaken::Name));
    }
    if is_mail_taken(tx, &new.mail)? {
        return Ok(Err(AccountTaken::Mail));
    }
    let id = local_ids::take(tx, now_ms, 1)?;
    insert(tx, from_sql(id)?, new, pending.map(sql), now_ms).map(Ok)
}

/// The account that a pending one has become; `None` if no account has that pending ID.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn signed_up_as(
    tx: &mut Tx<'_>,
    pending: LocalAccountId,
) -> Result<Option<LocalAccountId>, StoreError> {
    let found = tx.query_opt(
        "select id from local_account where signed_up_as = $1",
        &[&sql(pending)],
        |row| row.i64("id"),
    )?;
    Ok(found.map(from_sql).transpose()?)
}

fn insert(
    tx: &mut Tx<'_>,
    id: LocalAccountId,
    new: &NewAccount,
    signed_up_as: Option<i64>,
    now_ms: i64,
) -> Result<LocalAccount, StoreError> {
    let (hash, cost) = (&new.passphrase, new.passphrase.cost);
    tx.execute_later(
        &format!(
            "insert into local_account (id, name, name_key, nickname, state, awaits_approval, role,
                 mail, mail_key, mail_verified_at_ms, created_at_ms, last_login_at_ms, {},
                 reason, signed_up_as, may_publish, deleting)
             values ($1, $2, $3, '', $4, $5, $6, $7, $8, $9, $9, null, $10, $11, $12, $13, $14, $15,
                 $16, $17, false, false)",
            passphrase_columns::COLUMNS
        ),
        &[
            &sql(id),
            &new.name.as_str(),
            &new.name.key(),
            &AccountState::NotActivated.name(),
            &new.awaits_approval,
            &new.role.name(),
            &new.mail.as_str(),
            &new.mail.key(),
            &now_ms,
            &hash.hash,
            &hash.salt.to_vec(),
            &i64::from(cost.memory_kib),
            &i64::from(cost.passes),
            &i64::from(cost.lanes),
            &hash.normalization,
            &&*without_nul(&new.reason),
            &signed_up_as,
        ],
    )?;
    profile::add(tx, id, &Profile::default())?;
    library::add(tx, library::LibraryOwner::Account(id))?;
    by_id(tx, id)?.ok_or(StoreError::NoAccount)
}

/// True if an account, or a pending one that is not void, has the name.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn is_name_taken(tx: &mut Tx<'_>, name: &AccountName, now_ms: i64) -> Result<bool, StoreError> {
    let key = name.key();
    let found = tx.query_opt(
        "select id from local_account where name_key = $1",
        &[&key],
        |row| row.i64("id"),
    )?;
    Ok(found.is_some() || is_name_pending(tx, &key, now_ms)?)
}

/// True if a pending account that is not void has reserved the name.
fn is_name_pending(tx: &mut Tx<'_>, key: &str, now_ms: i64) -> Result<bool, DbError> {
    let found = tx.query_opt(
        "select id from pending_account
         where name_key = $1 and created_at_ms > $2",
        &[&key, &(now_ms - VerificationDigest::LASTS_MS)],
        |row| row.i64("id"),
    )?;
    Ok(found.is_some())
}

fn is_mail_taken(tx: &mut Tx<'_>, mail: &MailAddress) -> Result<bool, StoreError> {
    let found = tx.query_opt(
        "select id from local_account where mail_key = $1",
        &[&mail.key()],
        |row| row.i64("id"),
    )?;
    Ok(found.is_some())
}

/// The account with this ID.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn by_id(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Option<LocalAccount>, StoreError> {
    Ok(select(tx, "where id = $1 and not deleting", &[&sql(account)])?.pop())
}

/// The accounts with these IDs, in no order.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn by_ids(
    tx: &mut Tx<'_>,
    accounts: &[LocalAccountId],
) -> Result<Vec<LocalAccount>, StoreError> {
    if accounts.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Column::i64(accounts.iter().map(|id| sql(*id)));
    select(tx, "where id {in $1} and not deleting", &[&ids])
}

/// The account called `name`, in any case.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn by_name(tx: &mut Tx<'_>, name: &AccountName) -> Result<Option<LocalAccount>, StoreError> {
    Ok(select(tx, "where name_key = $1 and not deleting", &[&name.key()])?.pop())
}

/// The accounts with these names, in any case, in no order.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn by_names(tx: &mut Tx<'_>, names: &[AccountName]) -> Result<Vec<LocalAccount>, StoreError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<String> = names.iter().map(AccountName::key).collect();
    let keys = Column::text(keys.iter().map(String::as_str));
    select(tx, "where name_key {in $1} and not deleting", &[&keys])
}

/// The account with this mail address, in any case.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn by_mail(tx: &mut Tx<'_>, mail: &MailAddress) -> Result<Option<LocalAccount>, StoreError> {
    Ok(select(tx, "where mail_key = $1 and not deleting", &[&mail.key()])?.pop())
}

/// Checks that the account exists. An account that is being removed does not count.
pub(super) fn require(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), StoreError> {
    match by_id(tx, account)? {
        Some(_) => Ok(()),
        None => Err(StoreError::NoAccount),
    }
}

/// Locks another account after this one if it is one of this server, so that its removal sees what this write stores about it.
/// Fails if it does not exist (any more). The write's root is [`relation::root`](super::relation::root): one with a lower ID is
/// locked already.
pub(super) fn lock_other(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
) -> Result<(), StoreError> {
    let Some(other) = local_account_id(other) else {
        return Ok(());
    };
    if other > account {
        tx.lock_later(root(other))?;
    }
    require(tx, other)
}

/// At most `limit` accounts above `after`, in order of their IDs.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn list(
    tx: &mut Tx<'_>,
    after: Option<LocalAccountId>,
    limit: u32,
) -> Result<Vec<LocalAccount>, StoreError> {
    select(
        tx,
        "where id > $1 and not deleting order by id limit $2",
        &[&after.map_or(0, sql), &i64::from(limit)],
    )
}

/// At most `limit` accounts whose names begin with `beginning`, in any case, by their names.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn beginning_with(
    tx: &mut Tx<'_>,
    beginning: &str,
    limit: u32,
) -> Result<Vec<LocalAccount>, StoreError> {
    let beginning = beginning.to_ascii_lowercase();
    let end = format!("{beginning}{}", char::MAX);
    select(
        tx,
        "where name_key >= $1 and name_key < $2 and not deleting order by name_key limit $3",
        &[&beginning.as_str(), &end.as_str(), &i64::from(limit)],
    )
}

/// The number of accounts, or of those that logged in from `since_ms` on.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn count(tx: &mut Tx<'_>, since_ms: Option<i64>) -> Result<i64, StoreError> {
    Ok(tx.query_one(
        "select count(*) as accounts from local_account
         where not deleting and coalesce(last_login_at_ms, $2) >= $1",
        &[&since_ms.unwrap_or(NEVER_MS), &NEVER_MS],
        |row| row.i64("accounts"),
    )?)
}

/// An account's passphrase.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn passphrase(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<Option<PassphraseHash>, StoreError> {
    let query = format!(
        "select {} from local_account where id = $1 and not deleting",
        passphrase_columns::COLUMNS
    );
    // The row has its own result, because the database's closure can only fail with the database's
    // errors.
    let found = tx.query_opt(&query, &[&sql(account)], |row| {
        Ok(passphrase_columns::from_row(row))
    })?;
    found.transpose()
}

/// Changes an account's state along a permitted edge. Returns the state before. An account that
/// becomes active does not wait for approval any more.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Unreadable`] if a stored
/// value cannot be read; [`StoreError::Db`] if the database fails.
pub fn change_state(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    to: AccountState,
) -> Result<Result<AccountState, StateChangeError>, StoreError> {
    let from = by_id(tx, account)?.ok_or(StoreError::NoAccount)?.state;
    if let Err(refused) = from.change_to(to) {
        return Ok(Err(refused));
    }
    store_state(tx, account, (from, to))?;
    Ok(Ok(from))
}

/// The statement names the previous state, so that even a writer without a lock cannot take another
/// edge.
fn store_state(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    (from, to): (AccountState, AccountState),
) -> Result<(), StoreError> {
    let changed = tx.execute(
        "update local_account set state = $3, awaits_approval = awaits_approval and $3 <> 'active'
         where id = $1 and state = $2 and not deleting",
        &[&sql(account), &from.name(), &to.name()],
    )?;
    require_changed(changed)
}

/// Records that the right passphrase was presented, and replaces its hash if it is given again with
/// another cost. The first log-in activates the account. Returns its state after that. An account
/// that may not log in stays unchanged.
///
/// `verified` is the hash with which the passphrase was compared outside of a transaction. If it
/// was replaced meanwhile, the log-in fails, and the new hash does not undo the replacement.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Unreadable`] if a stored
/// value cannot be read; [`StoreError::Db`] if the database fails.
pub fn log_in(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    verified: &PassphraseHash,
    rehashed: Option<&PassphraseHash>,
    now_ms: i64,
) -> Result<Result<AccountState, LogInFailed>, StoreError> {
    let known = by_id(tx, account)?.ok_or(StoreError::NoAccount)?;
    if passphrase(tx, account)?.as_ref() != Some(verified) {
        return Ok(Err(LogInFailed::PassphraseChanged));
    }
    let state = match known.state.after_log_in(known.awaits_approval) {
        Ok(state) => state,
        Err(refused) => return Ok(Err(refused.into())),
    };
    if state != known.state {
        store_state(tx, account, (known.state, state))?;
    }
    set(tx, account, "last_login_at_ms", &now_ms)?;
    if let Some(hash) = rehashed {
        set_passphrase(tx, account, hash)?;
    }
    Ok(Ok(state))
}

/// Replaces an account's passphrase.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn set_passphrase(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    passphrase: &PassphraseHash,
) -> Result<(), StoreError> {
    let cost = passphrase.cost;
    let changed = tx.execute(
        "update local_account set passphrase_hash = $2, salt = $3, hash_memory_kib = $4,
             hash_passes = $5, hash_lanes = $6, normalization = $7
         where id = $1 and not deleting",
        &[
            &sql(account),
            &passphrase.hash,
            &passphrase.salt.to_vec(),
            &i64::from(cost.memory_kib),
            &i64::from(cost.passes),
            &i64::from(cost.lanes),
            &passphrase.normalization,
        ],
    )?;
    require_changed(changed)
}

/// Replaces an account's nickname, which is a part of its profile in its library.
pub(super) fn set_nickname(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    nickname: &Nickname,
) -> Result<(), StoreError> {
    set(tx, account, "nickname", &nickname.as_str())
}

/// Gives an account a role.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn set_role(tx: &mut Tx<'_>, account: LocalAccountId, role: Role) -> Result<(), StoreError> {
    set(tx, account, "role", &role.name())
}

/// Permits an account to show its sources to the world, or ends that. Public sources stay public:
/// [`super::account_source::withdraw`] ends it. Must be written below [`root`].
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn set_may_publish(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    may_publish: bool,
) -> Result<(), StoreError> {
    set(tx, account, "may_publish", &may_publish)
}

/// Replaces an account's mail address by a verified one. Locks the clock.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn set_mail(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    mail: &MailAddress,
    now_ms: i64,
) -> Result<Result<(), AccountTaken>, StoreError> {
    local_ids::take_later(tx, 0, 0)?;
    let holder = tx.query_opt(
        "select id from local_account where mail_key = $1",
        &[&mail.key()],
        |row| row.i64("id"),
    )?;
    if holder.is_some_and(|holder| holder != sql(account)) {
        return Ok(Err(AccountTaken::Mail));
    }
    set(tx, account, "mail", &mail.as_str())?;
    set(tx, account, "mail_key", &mail.key())?;
    set(tx, account, "mail_verified_at_ms", &now_ms)?;
    Ok(Ok(()))
}

fn set(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    column: &str,
    value: &dyn ToValue,
) -> Result<(), StoreError> {
    let update = format!("update local_account set {column} = $2 where id = $1 and not deleting");
    require_changed(tx.execute(&update, &[&sql(account), value])?)
}

/// Checks that a change of an account's row has found it.
pub(super) fn require_changed(rows: u64) -> Result<(), StoreError> {
    match rows {
        0 => Err(StoreError::NoAccount),
        _ => Ok(()),
    }
}

fn select(
    tx: &mut Tx<'_>,
    rest: &str,
    params: &[&dyn ToValue],
) -> Result<Vec<LocalAccount>, StoreError> {
    let sql = format!("select {COLUMNS} from local_account {rest}");
    let rows = tx.query(&sql, params, |row| Ok(from_row(row)))?;
    rows.into_iter().collect()
}

/// The time of the last log-in before the first one.
const NEVER_MS: i64 = -1;
const COLUMNS: &str = "id, name, nickname, state, awaits_approval, role, mail, mail_verified_at_ms,
    created_at_ms, last_login_at_ms, reason, may_publish";

fn from_row(row: &Row<'_>) -> Result<LocalAccount, StoreError> {
    let name = AccountName::new(row.str("name")?);
    let nickname = Nickname::new(row.str("nickname")?);
    let mail = MailAddress::new(row.str("mail")?);
    Ok(LocalAccount {
        id: from_sql(row.i64("id")?)?,
        name: name.map_err(|error| StoreError::unreadable("an account's name", &error))?,
        nickname: nickname.map_err(|error| StoreError::unreadable("a nickname", &error))?,
        state: parsed("an account's state", row.str("state")?)?,
        awaits_approval: row.bool("awaits_approval")?,
        role: parsed("an account's role", row.str("role")?)?,
        mail: mail.map_err(|error| StoreError::unreadable("a mail address", &error))?,
        mail_verified_at_ms: row.i64("mail_verified_at_ms")?,
        created_at_ms: row.i64("created_at_ms")?,
        last_login_at_ms: row.opt_i64("last_login_at_ms")?,
        reason: row.text("reason")?,
        may_publish: row.bool("may_publish")?,
    })
}
