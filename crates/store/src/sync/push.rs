use std::collections::{BTreeSet, HashMap, HashSet};

use driftline_core::sync::{ChangeResult, ObjectKey, ObjectValue, PushChange, Usn, same_value};
use driftline_db::{Root, Tx};

use super::{
    apply::{self, ChangeContext},
    cursor::{Cursor, current_cursor},
    values,
};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, LocalId, local_account_id},
    library::{self, object::KnownObject},
    posts::timeline::PostKey,
    social::{copy_relations::RelatedAccount, local_account},
};

/// The posts and accounts to which names in keys refer, if the account may see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The posts of bookmarks, favourites and filters, by their names in keys and values.
    pub posts: HashMap<String, PostKey>,
    /// The versions of the posts of bookmarks that the account is shown, by [`PostKey::post`]. A bookmark whose version is
    /// missing or stale takes another USN once it is compared ([`bookmark_copy`](crate::social::bookmark_copy)).
    pub shown: HashMap<LocalId, String>,
    /// The accounts of lists, by the `acct`s in the keys.
    pub accounts: HashMap<String, AccountId>,
    /// Filters with more new posts than a push may add, which are refused.
    pub filters_over_limit: HashSet<ObjectKey>,
    /// The accounts of follows, blocks, mutes and notes on accounts.
    pub related: HashMap<ObjectKey, RelatedAccount>,
}

impl Resolved {
    /// The root of a push of an account: that of the accounts of this server which it locks with the lowest ID.
    pub fn root(&self, account: LocalAccountId) -> Root {
        let lowest = self.locked_accounts().min();
        local_account::root(lowest.map_or(account, |other| other.min(account)))
    }

    /// The accounts of this server that its follows, blocks, mutes and notes are about.
    pub(super) fn locked_accounts(&self) -> impl Iterator<Item = LocalAccountId> {
        let related = self.related.values();
        related.filter_map(|other| local_account_id(other.canonical_id))
    }

    /// Locks the account of a push, and the accounts of this server that its follows, blocks, mutes and notes are about, in the
    /// order of their IDs: none of them is removed meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database fails, or one of them does not exist any more.
    pub fn lock(&self, tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), StoreError> {
        let accounts: BTreeSet<LocalAccountId> = self.locked_accounts().chain([account]).collect();
        // The root is locked already.
        for account in accounts.into_iter().skip(1) {
            tx.lock_later(local_account::root(account))?;
        }
        Ok(())
    }
}

/// The result of a push.
#[derive(Clone, Debug, PartialEq)]
pub struct Pushed {
    /// The library's cursor before it.
    pub before: Cursor,
    /// The library's cursor after it.
    pub after: Cursor,
    /// The result of each change, in their order.
    pub results: Vec<ChangeResult>,
}

/// Stores the changes of a device, in their order. Each is stored only if the object's last USN is
/// its base. A change that is refused, or is in conflict, leaves nothing. Must be written below
/// [`Resolved::root`], after [`Resolved::lock`]. Locks the clock.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist (any more); [`StoreError::Unreadable`]
/// if a stored value cannot be read; [`StoreError::Db`] if the database fails.
pub fn push(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    changes: &[PushChange],
    resolved: &Resolved,
    now_ms: i64,
) -> Result<Pushed, StoreError> {
    // The first change may lock the clock, and the next ones take USNs.
    library::ensure_opening(tx)?;
    let before = current_cursor(tx, account)?;
    let context = ChangeContext {
        account,
        resolved,
        now_ms,
    };
    let changes = changes.iter();
    let results = changes.map(|change| store_change(tx, &context, change));
    Ok(Pushed {
        before,
        results: results.collect::<Result<_, _>>()?,
        after: current_cursor(tx, account)?,
    })
}

fn store_change(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    change: &PushChange,
) -> Result<ChangeResult, StoreError> {
    let (account, key) = (context.account, &change.key);
    let refused = |reason: String| ChangeResult::Refused {
        key: key.clone(),
        reason,
    };
    let wanted = match check(change) {
        Ok(wanted) => wanted,
        Err(reason) => return Ok(refused(reason)),
    };
    let (known, stored) = values::find(tx, account, key)?.unzip();
    let stored = stored.flatten();
    let usn = known.as_ref().map_or(Usn::NONE, KnownObject::usn);
    if is_same(key, wanted.as_ref(), stored.as_ref()) {
        return Ok(done(change, usn, stored.as_ref()));
    }
    if usn != change.base {
        return Ok(ChangeResult::Conflict {
            key: key.clone(),
            usn,
            value: stored.map(|value| value.json()),
        });
    }
    let living = known.filter(|known| !known.is_removed);
    let applied = match wanted {
        Some(value) => apply::put(tx, context, key, value, living.as_ref())?,
        None => match &living {
            Some(living) => apply::delete(tx, context, living)?,
            None => Ok(()),
        },
    };
    if let Err(reason) = applied {
        return Ok(refused(reason));
    }
    let (known, stored) = values::find(tx, account, key)?.unzip();
    let usn = known.as_ref().map_or(Usn::NONE, KnownObject::usn);
    Ok(done(change, usn, stored.flatten().as_ref()))
}

/// The result of a change after which the object has this value.
fn done(change: &PushChange, usn: Usn, stored: Option<&ObjectValue>) -> ChangeResult {
    let stored = stored.map(ObjectValue::json);
    ChangeResult::Done {
        key: change.key.clone(),
        usn,
        value: stored.filter(|stored| change.value.as_ref() != Some(stored)),
    }
}

/// The value that an object is to have; `None` for a deletion. The reason if no device may push it.
fn check(change: &PushChange) -> Result<Option<ObjectValue>, String> {
    let key = &change.key;
    match key.kind() {
        None => return Err(format!("this server has no objects of the kind of {key}")),
        Some(kind) if change.value.is_none() && !kind.is_deletable() => {
            return Err(format!("{key} is not deleted"));
        }
        Some(_) => {}
    }
    let read = |json: &serde_json::Value| ObjectValue::read(key, json.clone());
    let value = change.value.as_ref().map(read).transpose();
    value.map_err(|error| error.to_string())
}

/// True if a change to `wanted` leaves an object as it is. The server's additions to values do not
/// count.
fn is_same(key: &ObjectKey, wanted: Option<&ObjectValue>, stored: Option<&ObjectValue>) -> bool {
    let [wanted, stored] = [wanted, stored].map(|value| value.map(ObjectValue::json));
    same_value(key.kind(), wanted.as_ref(), stored.as_ref())
}
