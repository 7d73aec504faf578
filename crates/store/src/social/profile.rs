//! Profiles: accounts' self-descriptions, keyed by the account's ID. Nickname and profile are one object of the account's
//! library from their first change on. Before that both are empty.

use driftline_core::{
    social::{Nickname, Profile, ProfileError},
    sync::{ObjectKey, ObjectKind},
};
use driftline_db::{Column, Row, ToValue, Tx};

use super::local_account;
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, from_sql, sql},
    library::object::{self, AccountLibrary},
    text::{from_json, to_json},
};

/// Adds the profile of a new account.
pub(super) fn add(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    profile: &Profile,
) -> Result<(), StoreError> {
    Ok(tx.execute_later(
        "insert into profile (account_id, bio, avatar, header, fields, locked, bot, discoverable)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        &values(&sql(account), &to_json(FIELDS, &profile.fields)?, profile),
    )?)
}

/// Replaces an account's nickname and profile, unless the profile exceeds a limit. The same ones change nothing. Must be
/// written below the account's root.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Unreadable`] if a stored value cannot be read;
/// [`StoreError::Db`] if the database fails.
pub fn set(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    nickname: &Nickname,
    profile: &Profile,
    now_ms: i64,
) -> Result<Result<(), ProfileError>, StoreError> {
    if let Err(refused) = profile.check() {
        return Ok(Err(refused));
    }
    let known = local_account::by_id(tx, account)?.ok_or(StoreError::NoAccount)?;
    if known.nickname == *nickname && load(tx, account)? == *profile {
        return Ok(Ok(()));
    }
    let key = ObjectKey::own_profile();
    let object = object::find(tx, account, &key)?;
    let mut library = AccountLibrary::load(tx, account)?;
    match object {
        Some(object) => library.change(tx, object.id)?,
        None => {
            library.add(tx, ObjectKind::Profile, &[key], now_ms)?;
        }
    }
    local_account::set_nickname(tx, account, nickname)?;
    tx.execute_later(
        "update profile set bio = $2, avatar = $3, header = $4, fields = $5, locked = $6, bot = $7,
             discoverable = $8
         where account_id = $1",
        &values(&sql(account), &to_json(FIELDS, &profile.fields)?, profile),
    )?;
    Ok(Ok(()))
}

/// An account, its profile's fields as JSON, and the rest of its profile, in the order of both statements.
fn values<'a>(
    account: &'a i64,
    fields: &'a dyn ToValue,
    profile: &'a Profile,
) -> [&'a dyn ToValue; 8] {
    [
        account,
        &profile.bio,
        &profile.avatar,
        &profile.header,
        fields,
        &profile.locked,
        &profile.bot,
        &profile.discoverable,
    ]
}

/// The profile of an account; empty if the account does not exist.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn load(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Profile, StoreError> {
    let found = by_ids(tx, &[account])?.pop();
    Ok(found.map(|(_, profile)| profile).unwrap_or_default())
}

/// The profiles of these accounts, in no order.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_ids(
    tx: &mut Tx<'_>,
    accounts: &[LocalAccountId],
) -> Result<Vec<(LocalAccountId, Profile)>, StoreError> {
    let ids = Column::i64(accounts.iter().map(|id| sql(*id)));
    let rows = tx.query(
        "select account_id, bio, avatar, header, fields, locked, bot, discoverable
         from profile where account_id {in $1}",
        &[&ids],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

fn from_row(row: &Row<'_>) -> Result<(LocalAccountId, Profile), StoreError> {
    let profile = Profile {
        bio: row.text("bio")?,
        avatar: row.opt_text("avatar")?,
        header: row.opt_text("header")?,
        fields: from_json(FIELDS, row.str("fields")?)?,
        locked: row.bool("locked")?,
        bot: row.bool("bot")?,
        discoverable: row.bool("discoverable")?,
    };
    Ok((from_sql(row.i64("account_id")?)?, profile))
}

const FIELDS: &str = "a profile's fields";
