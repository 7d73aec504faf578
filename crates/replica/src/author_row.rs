use std::collections::{HashMap, hash_map::Entry};

use driftline_core::sync::SyncedObject;
use driftline_db::{ToValue, Tx};
use driftline_mastodon::RawObject;

use crate::{ReplicaError, object_row::number};

/// Stores the profiles that a library's objects have, which came in the full sync with this number or after it: those of the
/// posts' authors, of the boosted posts' authors, and those that came without a post. The objects are in the order of their
/// changes: ascending, or descending in a full sync.
pub(crate) fn put_all(
    tx: &mut Tx<'_>,
    library: &str,
    objects: &[SyncedObject],
    full_sync: u64,
    is_ascending: bool,
) -> Result<(), ReplicaError> {
    // By the author's name; those of boosted posts apart, since a boost may have an old one.
    let mut profiles: HashMap<(String, bool), String> = HashMap::new();
    for object in objects {
        let value = RawObject::parse(object.value.get()).unwrap_or_default();
        let status = value.object("status");
        let boosted = status.object("reblog");
        for (of, is_boosted) in [(&boosted, true), (&status, false), (&value, false)] {
            let Some(account) = of.get("account") else {
                continue;
            };
            let Some(acct) = acct(&RawObject::from_value(account).unwrap_or_default()) else {
                continue;
            };
            match profiles.entry((acct, is_boosted)) {
                Entry::Occupied(_) if !is_ascending => {}
                entry => {
                    entry.insert_entry(account.get().to_owned());
                }
            }
        }
    }
    let full_sync = number(full_sync)?;
    for ((acct, is_boosted), account) in profiles {
        let name = display_name(&account);
        let seen_in = if is_boosted { 0 } else { full_sync };
        let parameters: [&dyn ToValue; 6] =
            [&acct, &library, &name, &account, &seen_in, &is_ascending];
        tx.execute(
            "insert into author (acct, library, display_name, account, seen_in)
             values ($1, $2, $3, $4, $5)
             on conflict (acct, library) do update set display_name = excluded.display_name,
                 account = excluded.account, seen_in = excluded.seen_in
             where seen_in < excluded.seen_in or (seen_in = excluded.seen_in and $6)",
            &parameters,
        )?;
    }
    Ok(())
}

/// The display names of a post's author, in all libraries. There are none if the post does not name its author.
pub(crate) fn names_of(tx: &mut Tx<'_>, post: &RawObject<'_>) -> Result<Vec<String>, ReplicaError> {
    let Some(acct) = acct(&post.object("account")) else {
        return Ok(Vec::new());
    };
    Ok(tx.query(
        "select distinct display_name from author where acct = $1 and display_name <> ''",
        &[&acct],
        |row| row.text("display_name"),
    )?)
}

/// All authors with their display names, each name once.
pub(crate) fn display_names(tx: &mut Tx<'_>) -> Result<Vec<(String, String)>, ReplicaError> {
    Ok(tx.query(
        "select distinct acct, display_name from author where display_name <> ''",
        &[],
        |row| Ok((row.text("acct")?, row.text("display_name")?)),
    )?)
}

/// The newest profile from a library of the account with this entity, JSON.
pub(crate) fn newest(
    tx: &mut Tx<'_>,
    library: &str,
    account: &str,
) -> Result<Option<String>, ReplicaError> {
    let Some(acct) = acct(&RawObject::parse(account).unwrap_or_default()) else {
        return Ok(None);
    };
    Ok(tx.query_opt(
        "select account from author where acct = $1 and library = $2",
        &[&acct, &library],
        |row| row.text("account"),
    )?)
}

/// Removes the profiles that a library showed before the full sync with this number, and not since. Those that only boosts have
/// shown stay: nothing says when they came.
pub(crate) fn sweep(tx: &mut Tx<'_>, library: &str, full_sync: u64) -> Result<(), ReplicaError> {
    tx.execute(
        "delete from author where library = $1 and seen_in <> 0 and seen_in <> $2",
        &[&library, &number(full_sync)?],
    )?;
    Ok(())
}

/// Removes the profiles that a library showed.
pub(crate) fn remove_all(tx: &mut Tx<'_>, library: &str) -> Result<(), ReplicaError> {
    tx.execute("delete from author where library = $1", &[&library])?;
    Ok(())
}

/// The name of an account as the server shows it, in lower case.
fn acct(account: &RawObject<'_>) -> Option<String> {
    let acct = account.some_text("acct")?;
    let acct = acct.strip_prefix('@').unwrap_or(&acct);
    (!acct.is_empty()).then(|| acct.to_ascii_lowercase())
}

fn display_name(account: &str) -> String {
    let account = RawObject::parse(account).unwrap_or_default();
    let name = account.text("display_name").unwrap_or_default();
    name.into_owned()
}
