//! The fate of each edit. Each edit of a list's title, of a note's line, or of another value has a text or number of its own,
//! its token.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::sync::{ObjectKey, ObjectKind};
use serde_json::Value;

/// The edits of all devices and of the server's other clients.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    /// Tokens that must be somewhere.
    tokens: BTreeMap<String, ObjectKey>,
    /// The largest place of each marker.
    places: BTreeMap<ObjectKey, u64>,
    /// Members of sets whose last edit is an addition.
    added: BTreeSet<ObjectKey>,
}

/// All values that are somewhere.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    tokens: BTreeSet<String>,
    places: BTreeMap<ObjectKey, u64>,
    members: BTreeSet<ObjectKey>,
}

impl Ledger {
    /// Notes an edit by someone who saw `before`. `is_addition` is false if the server may already have what is added.
    pub(crate) fn edit(
        &mut self,
        key: &ObjectKey,
        before: Option<&Value>,
        after: Option<&Value>,
        is_addition: bool,
    ) {
        let (before, now) = (tokens(before), tokens(after));
        for token in before.iter().filter(|token| !now.contains(token)) {
            self.tokens.remove(token);
        }
        for token in now.into_iter().filter(|token| !before.contains(token)) {
            self.tokens.insert(token, key.clone());
        }
        if let Some(place) = place(key, after) {
            self.places.insert(key.clone(), place.max(self.place(key)));
        }
        match after {
            None => {
                self.added.remove(key);
                self.added
                    .retain(|member| member.list_and_acct().is_none_or(|(list, _)| list != *key));
            }
            Some(_) if is_addition && is_member(key) => {
                self.added.insert(key.clone());
            }
            Some(_) => {}
        }
    }

    /// The largest place of a marker so far.
    pub(crate) fn place(&self, key: &ObjectKey) -> u64 {
        self.places.get(key).copied().unwrap_or(0)
    }

    /// Forgets what was somewhere before a disaster and is nowhere after it.
    pub(crate) fn lose(&mut self, before: &Presence, after: &Presence) {
        let is_lost =
            |token: &String| before.tokens.contains(token) && !after.tokens.contains(token);
        self.tokens.retain(|token, _| !is_lost(token));
        for (key, place) in &mut self.places {
            *place = after.places.get(key).copied().unwrap_or(0).min(*place);
        }
        let is_lost =
            |key: &ObjectKey| before.members.contains(key) && !after.members.contains(key);
        self.added.retain(|key| !is_lost(key));
    }

    /// Forgets what `gone` has and `kept` has not: the protocol lets that version go.
    pub(crate) fn forgive(&mut self, key: &ObjectKey, gone: Option<&Value>, kept: Option<&Value>) {
        let kept_tokens = tokens(kept);
        for token in tokens(gone) {
            if !kept_tokens.contains(&token) {
                self.tokens.remove(&token);
            }
        }
        let kept_place = place(key, kept).unwrap_or(0);
        if place(key, gone).is_some_and(|gone| gone > kept_place) {
            self.places.insert(key.clone(), kept_place);
        }
    }

    /// Forgets the addition of a member of a set, which may have been deleted by someone who has not seen it.
    pub(crate) fn forgive_addition(&mut self, key: &ObjectKey) {
        self.added.remove(key);
    }

    /// Checks that each edit is somewhere.
    ///
    /// # Errors
    /// The first edit that is nowhere.
    pub(crate) fn check(&self, presence: &Presence) -> Result<(), String> {
        for (token, key) in &self.tokens {
            if !presence.tokens.contains(token) {
                return Err(format!("{token} of {key} was lost"));
            }
        }
        for (key, place) in &self.places {
            let present = presence.places.get(key).copied().unwrap_or(0);
            if present < *place {
                return Err(format!("{key} went back from {place} to {present}"));
            }
        }
        match self.added.difference(&presence.members).next() {
            Some(key) => Err(format!("the addition of {key} was lost")),
            None => Ok(()),
        }
    }
}

impl Presence {
    /// Notes a value that is somewhere.
    pub(crate) fn add(&mut self, key: &ObjectKey, value: Option<&Value>) {
        self.tokens.extend(tokens(value));
        if let Some(place) = place(key, value) {
            let known = self.places.entry(key.clone()).or_default();
            *known = place.max(*known);
        }
        if value.is_some() && is_member(key) {
            self.members.insert(key.clone());
        }
    }
}

/// The tokens of a value: the title of a list or filter, the name of a profile, the lines of a note, the end of a mute, the
/// number of another object.
pub(crate) fn tokens(value: Option<&Value>) -> Vec<String> {
    let texts = ["title", "display_name", "text", "number"].into_iter();
    let texts = texts.filter_map(|name| value?.get(name)?.as_str());
    let lines = texts.flat_map(str::lines);
    let lines = lines.filter(|line| line.starts_with('t'));
    let end = value.and_then(|value| value.get("expires_at")?.as_u64());
    lines
        .map(str::to_owned)
        .chain(end.map(|end| format!("t{end}")))
        .collect()
}

/// The place of a marker.
pub(crate) fn place(key: &ObjectKey, value: Option<&Value>) -> Option<u64> {
    match key.kind()? {
        ObjectKind::Marker => value?.get("last_read")?.as_str()?.parse().ok(),
        _ => None,
    }
}

/// True for members of sets: they are added and deleted, but not changed.
pub(crate) fn is_member(key: &ObjectKey) -> bool {
    matches!(
        key.kind(),
        Some(
            ObjectKind::Bookmark
                | ObjectKind::Favourite
                | ObjectKind::ListMember
                | ObjectKind::Block
        )
    )
}
