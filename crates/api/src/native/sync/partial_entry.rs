use std::collections::HashMap;

use driftline_store::{AccountId, SourceKey, StoreError, Tx, sync::SourceEntry};
use serde_json::{Map, Value, json, value::RawValue};

use crate::mastodon::view::View;

/// The entries of a chunk of which a replica has all but the counts, and perhaps the author's profile.
pub(super) struct PartialEntries {
    /// The USN at which the replica was last complete.
    held: Option<i64>,
    /// The entities `Account` of authors whose names have changed since.
    renamed: HashMap<AccountId, Box<RawValue>>,
}

impl PartialEntries {
    /// Reads the changed profiles of the authors of those entries that a replica held at the USN `held`.
    pub(super) fn load(
        tx: &mut Tx<'_>,
        source: SourceKey,
        entries: &[SourceEntry],
        held: Option<i64>,
        view: &View,
    ) -> Result<Self, StoreError> {
        let mut partial = Self {
            held,
            renamed: HashMap::new(),
        };
        let renamed = entries.iter().filter(|entry| partial.is_renamed(entry));
        let mut ids: Vec<AccountId> = renamed.filter_map(|entry| entry.post.account).collect();
        ids.sort_unstable();
        ids.dedup();
        partial.renamed = view.accounts_of_source(tx, source, &ids)?;
        Ok(partial)
    }

    /// The partial value of an entry with this entity `Status`; `None` if the replica needs the whole one.
    pub(super) fn value(&self, entry: &SourceEntry, status: &str) -> Option<Value> {
        if !self.is_held(entry) {
            return None;
        }
        let status: Map<String, Value> = serde_json::from_str(status).ok()?;
        let mut value = json!({ "place": entry.place.to_string(), "counts": counts(&status) });
        let account = entry.post.account.filter(|_| self.is_renamed(entry));
        if let Some(account) = account.and_then(|id| self.renamed.get(&id)) {
            value["account"] = serde_json::from_str(account.get()).ok()?;
        }
        Some(value)
    }

    fn is_held(&self, entry: &SourceEntry) -> bool {
        self.held.is_some_and(|held| entry.is_content_held(held))
    }

    fn is_renamed(&self, entry: &SourceEntry) -> bool {
        self.is_held(entry) && entry.profile_usn > self.held
    }
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
