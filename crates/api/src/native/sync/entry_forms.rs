use std::{borrow::Cow, collections::HashMap};

use driftline_core::sync::RawJson;
use driftline_store::{AccountId, SourceKey, StoreError, Tx, sync::SourceEntry};
use serde::Serialize;
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use crate::mastodon::view::View;

/// The forms of a chunk's entries: those that a replica held lack all but the counts, and all have the author's newest names.
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
        if let Some(partial) = self.partial(entry, status) {
            return Ok(RawJson::from(&partial));
        }
        RawJson::write(&WholeValue {
            place: entry.place.to_string(),
            status: &self.whole(entry, status),
        })
    }

    /// The partial value of an entry with this entity `Status`; `None` if the replica needs the whole one.
    fn partial(&self, entry: &SourceEntry, status: &RawValue) -> Option<Value> {
        if !self.is_held(entry) {
            return None;
        }
        let status: Map<String, Value> = serde_json::from_str(status.get()).ok()?;
        let mut value = json!({ "place": entry.place.to_string(), "counts": counts(&status) });
        if let Some(account) = self.account(entry) {
            value["account"] = account;
        }
        Some(value)
    }

    /// The entity `Status` of an entry with the author's newest names: the stored post has those of the time at which it was read.
    fn whole<'s>(&self, entry: &SourceEntry, status: &'s RawValue) -> Cow<'s, RawValue> {
        match self.with_newest_names(entry, status) {
            Some(status) => Cow::Owned(status),
            None => Cow::Borrowed(status),
        }
    }

    fn with_newest_names(&self, entry: &SourceEntry, status: &RawValue) -> Option<Box<RawValue>> {
        let account = self.account(entry)?;
        let mut status: Map<String, Value> = serde_json::from_str(status.get()).ok()?;
        let shown = status.get("account")?;
        if NAMES
            .iter()
            .all(|name| shown.get(name) == account.get(name))
        {
            return None;
        }
        status.insert("account".to_owned(), account);
        to_raw_value(&status).ok()
    }

    /// The author's changed profile, if the replica may lack it.
    fn account(&self, entry: &SourceEntry) -> Option<Value> {
        let author = entry.post.account.filter(|_| self.is_renamed(entry))?;
        serde_json::from_str(self.renamed.get(&author)?.get()).ok()
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

/// The members of a status that may change without an edit, also those of a boosted post.
fn counts(status: &Map<String, Value>) -> Map<String, Value> {
    let members = |status: &Map<String, Value>| -> Map<String, Value> {
        let members = COUNTS.iter().filter_map(|name| status.get_key_value(*name));
        members
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let mut counts = members(status);
    if let Some(Value::Object(boosted)) = status.get("reblog") {
        counts.insert("reblog".to_owned(), members(boosted).into());
    }
    counts
}

/// The members that are not hashed as content (`driftline_mastodon::post_hashes`): counts, and what a server adds later.
const COUNTS: [&str; 7] = [
    "replies_count",
    "reblogs_count",
    "favourites_count",
    "quotes_count",
    "poll",
    "card",
    "mentions",
];

/// The names in the entity `Account`.
const NAMES: [&str; 3] = ["acct", "display_name", "url"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_a_post_and_of_the_post_that_it_boosts() {
        let boosted = json!({
            "id": "1", "content": "text", "favourites_count": 3, "card": { "url": "u" }, "reblog": null,
        });
        let status = json!({
            "id": "2", "content": "", "favourites_count": 0, "poll": null, "reblog": boosted, "account": {},
        });
        let Value::Object(status) = status else {
            panic!("{status}");
        };
        let expected = json!({
            "favourites_count": 0, "poll": null,
            "reblog": { "favourites_count": 3, "card": { "url": "u" } },
        });
        assert_eq!(Value::Object(counts(&status)), expected);
    }
}
