use std::collections::{BTreeSet, HashMap, HashSet};

use driftline_core::{
    social::MAX_KEYWORDS_PER_FILTER,
    sync::{ChangeResult, ObjectKey, ObjectKind, ObjectValue, PushChange, Usn, same_value},
};
use driftline_db::{Root, Tx};

use super::{
    apply,
    cursor::{Cursor, current_cursor},
    filter_change::MAX_NEW_FILTER_POSTS,
    values,
};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, LocalId, local_account_id},
    library::{self, object::KnownObject},
    local_ids,
    posts::timeline::PostKey,
    social::{copy_relations::RelatedAccount, local_account},
};

/// The posts and accounts that names in keys stand for, as far as the account may see it.
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

/// True if a change of an object of this kind may change the relations of the other account.
pub(super) fn changes_other(kind: ObjectKind) -> bool {
    matches!(kind, ObjectKind::Follow | ObjectKind::Block)
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
/// [`Resolved::root`], after [`Resolved::lock`]. Locks the clock, unless there are many and their IDs can be reserved.
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
    if changes.len() > MAX_CHANGES_BELOW_CLOCK {
        local_ids::reserve(tx, now_ms, max_ids(changes))?;
    }
    let before = current_cursor(tx, account)?;
    let mut results = Vec::with_capacity(changes.len());
    for change in changes {
        results.push(store_change(tx, account, change, resolved, now_ms)?);
    }
    Ok(Pushed {
        before,
        after: current_cursor(tx, account)?,
        results,
    })
}

/// The number of IDs that changes take at most, but for those that a follow takes for lists of an earlier follow of a copy.
fn max_ids(changes: &[PushChange]) -> usize {
    let keywords = |change: &PushChange| {
        let keywords = change.value.as_ref()?.get("keywords")?.as_array()?.len();
        Some(keywords.min(MAX_KEYWORDS_PER_FILTER))
    };
    let keywords: usize = changes.iter().filter_map(keywords).sum();
    MAX_NEW_FILTER_POSTS + keywords + changes.len() * MAX_IDS_PER_CHANGE
}

fn store_change(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    change: &PushChange,
    resolved: &Resolved,
    now_ms: i64,
) -> Result<ChangeResult, StoreError> {
    let key = &change.key;
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
    let usn = known.as_ref().map_or(Usn::NONE, usn_of);
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
        Some(value) => apply::put(tx, account, key, value, living.as_ref(), resolved, now_ms)?,
        None => match &living {
            Some(living) => apply::delete(tx, account, living, resolved, now_ms)?,
            None => Ok(()),
        },
    };
    if let Err(reason) = applied {
        return Ok(refused(reason));
    }
    let (known, stored) = values::find(tx, account, key)?.unzip();
    let usn = known.as_ref().map_or(Usn::NONE, usn_of);
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
        Some(ObjectKind::Marker | ObjectKind::Profile) if change.value.is_none() => {
            return Err(format!("{key} is not deleted"));
        }
        Some(_) => {}
    }
    let read = |json: &serde_json::Value| ObjectValue::read(key, json.clone());
    let value = change.value.as_ref().map(read).transpose();
    value.map_err(|error| error.to_string())
}

/// True if a change to `wanted` leaves an object as it is. What the server adds to values does not
/// count.
fn is_same(key: &ObjectKey, wanted: Option<&ObjectValue>, stored: Option<&ObjectValue>) -> bool {
    let [wanted, stored] = [wanted, stored].map(|value| value.map(ObjectValue::json));
    same_value(key.kind(), wanted.as_ref(), stored.as_ref())
}

fn usn_of(object: &KnownObject) -> Usn {
    Usn::new(object.usn.cast_unsigned())
}

/// A push with more changes reserves its IDs. For fewer, the commit of a reservation takes as long as they lock the clock.
const MAX_CHANGES_BELOW_CLOCK: usize = 8;
/// A change of a relation may take one for its object and one for the end of an earlier relation to a copy.
const MAX_IDS_PER_CHANGE: usize = 2;
