use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use driftline_core::sync::RawJson;
use driftline_mastodon::{RawObject, entry_update};
use driftline_store::{AccountId, SourceKey, StoreError, Tx, sync::SourceEntry};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::mastodon::view::View;

/// The forms of a chunk's entries: of those that a replica held comes the update alone, and all have the author's names as the
/// source has last shown them.
pub(super) struct EntryForms {
    /// The USN at which the replica was last complete.
    held: Option<i64>,
    /// The entities `Account` of authors whose names have changed since they were first shown, or since then.
    renamed: HashMap<AccountId, Box<RawValue>>,
}

impl EntryForms {
    /// Reads the changed profiles of the entries' authors that a replica lacks which was last complete at the USN `held`.
    pub(super) fn load(
        tx: &mut Tx<'_>,
        source: SourceKey,
        entries: &[SourceEntry],
        held: Option<i64>,
        view: &View,
    ) -> Result<Self, StoreError> {
        let mut forms = Self {
            held,
            renamed: HashMap::new(),
        };
        let renamed = entries.iter().filter(|entry| forms.is_renamed(entry));
        let mut ids: Vec<AccountId> = renamed.filter_map(|entry| entry.post.account).collect();
        ids.sort_unstable();
        ids.dedup();
        forms.renamed = view.accounts_of_source(tx, source, &ids)?;
        Ok(forms)
    }

    /// The value of an entry with this entity `Status`.
    ///
    /// # Errors
    /// [`serde_json::Error`] if it cannot be JSON.
    pub(super) fn value(
        &self,
        entry: &SourceEntry,
        status: &RawValue,
    ) -> Result<RawJson, serde_json::Error> {
        let place = entry.place.to_string();
        let is_boost = entry.post.boost_of.is_some();
        if self.is_held(entry)
            && let Some(update) = entry_update(status.get(), is_boost)
        {
            return RawJson::write(&PartialValue {
                place,
                update: &RawValue::from_string(update)?,
                account: self.account(entry),
            });
        }
        let renamed = self.with_newest_names(entry, status);
        RawJson::write(&WholeValue {
            place,
            status: renamed.as_deref().unwrap_or(status),
        })
    }

    /// The entity `Status` of an entry with the author's newest names, if the stored post has others, which are those of the time
    /// at which it was read.
    fn with_newest_names(&self, entry: &SourceEntry, status: &RawValue) -> Option<Box<RawValue>> {
        let account = self.account(entry)?;
        let status = RawObject::from_value(status)?;
        let names = |account: &RawObject<'_>| -> [Option<String>; 3] {
            NAMES.map(|name| account.text(name).map(Cow::into_owned))
        };
        if names(&status.object("account")) == names(&RawObject::from_value(account)?) {
            return None;
        }
        let mut members: BTreeMap<&str, &RawValue> = status.members().collect();
        members.insert("account", account);
        to_raw_value(&members).ok()
    }

    /// The author's changed profile, if the replica may lack it.
    fn account(&self, entry: &SourceEntry) -> Option<&RawValue> {
        let author = entry.post.account.filter(|_| self.is_renamed(entry))?;
        self.renamed.get(&author).map(|account| &**account)
    }

    fn is_held(&self, entry: &SourceEntry) -> bool {
        self.held.is_some_and(|held| entry.is_content_held(held))
    }

    fn is_renamed(&self, entry: &SourceEntry) -> bool {
        match self.is_held(entry) {
            true => entry.profile_usn > self.held,
            false => entry.profile_usn.is_some(),
        }
    }
}

/// The value of an entry that a replica may lack. Replicas find the place quickly at its beginning.
#[derive(Serialize)]
struct WholeValue<'a> {
    place: String,
    status: &'a RawValue,
}

/// The value of an entry that a replica has.
#[derive(Serialize)]
struct PartialValue<'a> {
    place: String,
    update: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<&'a RawValue>,
}

/// The names in the entity `Account`.
const NAMES: [&str; 3] = ["acct", "display_name", "url"];
