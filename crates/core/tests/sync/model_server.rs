//! A model of the server: a map, as the specification has it.

use std::{cmp::Reverse, collections::BTreeMap, fmt, sync::Arc};

use driftline_core::sync::{
    ACCOUNT_LIBRARY, Binding, ChangeResult, LibraryNews, LibraryState, ObjectKey, ObjectKind,
    PushAnswer, PushChange, PushRequest, RawJson, StoredPush, SyncAnswer, SyncedObject, Tombstone,
    Usn, same_value,
};
use serde_json::{Value, json};

/// A server and its store.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) store: ServerStore,
    /// The openings so far. It is random in a server; here it never repeats.
    nonces: u64,
    /// True if this opening has given a USN.
    is_recorded: bool,
    /// True after the store was once replaced by a backup.
    pub(crate) is_restored: bool,
    /// Objects that ended with others or by others than the account, each with its last value.
    pub(crate) ended: Vec<(ObjectKey, Value)>,
    /// A rule that this server breaks, to show that its tests notice.
    pub(crate) flaw: Option<Flaw>,
}

/// A rule of the specification that a server may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Flaw {
    /// It stores changes of other versions than its own.
    SkipsComparison,
    /// It collects tombstones and leaves the horizon where it was.
    KeepsHorizon,
    /// It takes the cursors of other histories for its own.
    TrustsCursors,
}

/// The contents of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ServerStore {
    /// The USN and value of each object; `None` is a tombstone.
    pub(crate) objects: BTreeMap<ObjectKey, (u64, Option<Value>)>,
    pub(crate) count: u64,
    epoch: u64,
    /// Cursors below it may miss tombstones.
    horizon: u64,
    /// Nonces and their first USNs.
    openings: Vec<(u64, u64)>,
    /// Shared by the copies of a store.
    devices: BTreeMap<String, Arc<LastPush>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LastPush {
    sequence: u64,
    hash: String,
    answer: PushAnswer,
}

#[derive(Debug, Clone, Copy)]
struct Cursor {
    epoch: u64,
    /// The opening of the last USN of the store when the cursor was made.
    nonce: u64,
    /// The update count when the cursor was made. An object that has moved up to it is missing below, so a store without it
    /// cannot continue from this cursor.
    seen: u64,
    /// The replica has the changes up to this USN. In a full sync, the USN at its start.
    usn: u64,
    /// In a full sync: the objects below this USN have not come.
    position: Option<u64>,
}

impl Server {
    /// A new server that breaks a rule.
    pub(crate) fn with_flaw(flaw: Option<Flaw>) -> Self {
        Self {
            flaw,
            ..Self::default()
        }
    }

    /// Answers a pull with chunks of at most `max` entries.
    pub(crate) fn pull(&self, cursor: Option<&str>, max: usize) -> SyncAnswer {
        let Binding { server, account } = binding();
        let cursor = cursor.map(Cursor::parse);
        let is_other = cursor.is_some_and(|cursor| !self.store.has(cursor))
            && self.flaw != Some(Flaw::TrustsCursors);
        let news = match is_other {
            true => Some(news(LibraryState::Diverged)),
            false => self.store.news(cursor, max),
        };
        SyncAnswer {
            server,
            account,
            news: news.into_iter().collect(),
        }
    }

    /// The first USN of the last opening.
    pub(crate) fn first_usn(&self) -> Usn {
        Usn::new(self.store.openings.last().map_or(0, |(_, first)| *first))
    }

    /// The cursor of a replica that has everything.
    pub(crate) fn cursor(&self) -> String {
        self.store.cursor(self.store.count).to_string()
    }

    /// True if this is the last push of its device that the server has stored.
    pub(crate) fn has_push(&self, push: &StoredPush) -> bool {
        let last = self.store.devices.get(&push.identity.device);
        last.is_some_and(|last| last.sequence == push.identity.sequence.get())
    }

    /// Answers a push; `Err` is 409 `device`.
    pub(crate) fn push(&mut self, body: &str) -> Result<PushAnswer, ()> {
        let request: PushRequest = serde_json::from_str(body).expect("a push");
        let (sequence, hash) = (request.sequence.get(), sha256(body));
        if let Some(last) = self.store.devices.get(&request.device) {
            if last.sequence == sequence && last.hash == hash {
                return Ok(last.answer.clone());
            }
            if last.sequence + 1 != sequence || last.hash != request.previous {
                return Err(());
            }
        }
        let before = self.store.cursor(self.store.count).to_string();
        let changes = request.changes.into_iter();
        let results = changes.map(|change| self.change(change)).collect();
        let Binding { server, account } = binding();
        let answer = PushAnswer {
            server,
            account,
            before,
            after: self.store.cursor(self.store.count).to_string(),
            results,
        };
        let last = LastPush {
            sequence,
            hash,
            answer: answer.clone(),
        };
        self.store.devices.insert(request.device, Arc::new(last));
        Ok(answer)
    }

    fn change(&mut self, change: PushChange) -> ChangeResult {
        let PushChange {
            key,
            base,
            value: sent,
        } = change;
        let (usn, value) = self.store.objects.get(&key).cloned().unwrap_or_default();
        let wanted = sent.clone().map(|value| self.given(&key, value));
        if same_value(key.kind(), value.as_ref(), wanted.as_ref()) {
            return self.done(key, sent.as_ref());
        }
        if usn != base.get() && self.flaw != Some(Flaw::SkipsComparison) {
            let usn = Usn::new(usn);
            return ChangeResult::Conflict { key, usn, value };
        }
        let refusal = wanted
            .as_ref()
            .and_then(|value| self.store.refusal(&key, value));
        if let Some(reason) = refusal {
            let reason = reason.to_owned();
            return ChangeResult::Refused { key, reason };
        }
        self.write(&key, wanted);
        self.done(key, sent.as_ref())
    }

    /// The result of a change after which the object is as the store has it.
    fn done(&self, key: ObjectKey, sent: Option<&Value>) -> ChangeResult {
        let (usn, value) = self.store.objects.get(&key).cloned().unwrap_or_default();
        ChangeResult::Done {
            key,
            usn: Usn::new(usn),
            value: value.filter(|value| Some(value) != sent),
        }
    }

    /// Stores a change, and ends the objects that end with it.
    pub(crate) fn write(&mut self, key: &ObjectKey, value: Option<Value>) {
        if !self.is_recorded {
            self.is_recorded = true;
            self.nonces += 1;
            self.store
                .openings
                .push((self.nonces, self.store.count + 1));
        }
        let ended = self.store.ended_by(key, value.as_ref());
        let value = value.map(|value| self.given(key, value));
        self.store.count += 1;
        self.store
            .objects
            .insert(key.clone(), (self.store.count, value));
        for other in ended {
            self.end(&other);
        }
    }

    /// Ends an object without a change by the account: the followed account ends a follow, for example.
    pub(crate) fn end(&mut self, key: &ObjectKey) {
        if let Some(gone) = self.store.value(key).cloned() {
            self.write(key, None);
            self.ended.push((key.clone(), gone));
        }
    }

    /// Gives an object a USN for a change of what only the server gives: the followed account accepts a follow, or a bookmark
    /// has another copy of its post.
    pub(crate) fn renew(&mut self, key: &ObjectKey) {
        if let Some((_, Some(value))) = self.store.objects.get_mut(key) {
            if let Some(members) = value.as_object_mut() {
                members.remove("requested");
            }
            let value = value.clone();
            self.write(key, Some(value));
        }
    }

    /// The value as the server stores it.
    fn given(&self, key: &ObjectKey, mut value: Value) -> Value {
        let known = self.store.value(key);
        match key.kind() {
            Some(ObjectKind::Bookmark) => {
                value["post"] = json!("1");
                // It never repeats, as the nonces do not.
                let new = || json!(format!("{}.{}", self.nonces, self.store.count));
                value["added"] = known.map_or_else(new, |known| known["added"].clone());
            }
            Some(ObjectKind::Favourite) => value["post"] = json!("1"),
            Some(
                ObjectKind::ListMember
                | ObjectKind::Block
                | ObjectKind::Mute
                | ObjectKind::AccountNote,
            ) => value["account"] = json!("2"),
            Some(ObjectKind::Follow) => {
                value["account"] = json!("2");
                if known.is_none_or(|known| known.get("requested").is_some()) {
                    value["requested"] = json!(true);
                }
            }
            Some(ObjectKind::Filter) => {
                if let Some(posts) = value.get_mut("posts").and_then(Value::as_array_mut) {
                    posts.retain(|post| *post != UNSEEN_POST);
                }
            }
            _ => {}
        }
        value
    }

    /// The server starts again, with the store of a backup.
    pub(crate) fn restore(&mut self, store: ServerStore) {
        self.store = store;
        self.is_restored = true;
        self.is_recorded = false;
    }

    /// The server starts again.
    pub(crate) fn restart(&mut self) {
        self.is_recorded = false;
    }

    pub(crate) fn raise_epoch(&mut self) {
        self.store.epoch += 1;
    }

    /// Removes the tombstones up to a USN.
    pub(crate) fn collect(&mut self, up_to: u64) {
        if self.flaw != Some(Flaw::KeepsHorizon) {
            self.store.horizon = self.store.horizon.max(up_to);
        }
        let objects = &mut self.store.objects;
        objects.retain(|_, (usn, value)| value.is_some() || *usn > up_to);
    }
}

impl ServerStore {
    /// The value of a living object.
    pub(crate) fn value(&self, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(key)?.1.as_ref()
    }

    /// The reason why a value is not stored.
    pub(crate) fn refusal(&self, key: &ObjectKey, value: &Value) -> Option<&'static str> {
        let has = |kind: ObjectKind, acct: &str| {
            let key = ObjectKey::named(kind, acct).expect("a key");
            self.value(&key).is_some()
        };
        if let Some((list, acct)) = key.list_and_acct() {
            if self.value(&list).is_none() {
                return Some("there is no such list");
            }
            if !has(ObjectKind::Follow, acct) {
                return Some("the account is not followed");
            }
        }
        if key.kind() == Some(ObjectKind::Follow) && has(ObjectKind::Block, key.name()) {
            return Some("the account is blocked");
        }
        let is_refused = value.to_string().contains(REFUSED);
        is_refused.then_some("it is refused")
    }

    /// The living objects that end with a change: the members of a deleted list, the follow of a blocked account, and members
    /// that are not followed any more.
    fn ended_by(&self, key: &ObjectKey, value: Option<&Value>) -> Vec<ObjectKey> {
        let is_ended = |other: &ObjectKey| match (key.kind(), value) {
            (Some(ObjectKind::List), None) => {
                other.list_and_acct().is_some_and(|(list, _)| list == *key)
            }
            (Some(ObjectKind::Follow), None) => other
                .list_and_acct()
                .is_some_and(|(_, acct)| acct == key.name()),
            (Some(ObjectKind::Block), Some(_)) => {
                other.kind() == Some(ObjectKind::Follow) && other.name() == key.name()
            }
            _ => false,
        };
        let living = self
            .objects
            .iter()
            .filter(|(_, (_, value))| value.is_some());
        let keys = living.map(|(key, _)| key);
        keys.filter(|&key| is_ended(key)).cloned().collect()
    }

    /// The news after a cursor of this store's history.
    fn news(&self, cursor: Option<Cursor>, max: usize) -> Option<LibraryNews> {
        match cursor {
            // A full sync that has begun goes on to its end.
            Some(Cursor {
                position: Some(position),
                ..
            }) => cursor.map(|cursor| self.full(cursor, position, max)),
            Some(cursor) if cursor.epoch == self.epoch && cursor.usn >= self.horizon => {
                (cursor.usn != self.count).then(|| self.changes(cursor.usn, max))
            }
            _ => Some(self.full(self.cursor(self.count), self.count + 1, max)),
        }
    }

    /// True if the cursor is of this store's history.
    fn has(&self, cursor: Cursor) -> bool {
        let mut openings = self.openings.iter();
        let opening = openings.find(|(nonce, _)| *nonce == cursor.nonce);
        let is_in_opening = opening.is_some_and(|(_, first)| *first <= cursor.seen);
        let is_over = openings.any(|(_, first)| *first <= cursor.seen);
        cursor.seen == 0 || (is_in_opening && !is_over && cursor.seen <= self.count)
    }

    fn changes(&self, above: u64, max: usize) -> LibraryNews {
        let mut entries: Vec<_> = self
            .objects
            .iter()
            .map(|(key, (usn, value))| (usn, key, value))
            .collect();
        entries.retain(|(usn, ..)| **usn > above);
        entries.sort_by_key(|(usn, ..)| **usn);
        let more = entries.len() > max;
        entries.truncate(max);
        let mut news = news(LibraryState::Changes);
        let mut at = above;
        for (usn, key, value) in entries {
            at = *usn;
            add(&mut news, *usn, key, value.as_ref());
        }
        let at = if more { at } else { self.count };
        news.cursor = Some(self.cursor(at).to_string());
        news.more = more;
        news
    }

    /// A chunk of a full sync. Tombstones count as entries but are left out, so a chunk may be empty.
    fn full(&self, start: Cursor, position: u64, max: usize) -> LibraryNews {
        let mut entries: Vec<_> = self
            .objects
            .iter()
            .map(|(key, (usn, value))| (usn, key, value))
            .collect();
        entries.retain(|(usn, ..)| **usn < position && **usn <= start.usn);
        entries.sort_by_key(|(usn, ..)| Reverse(**usn));
        let more = entries.len() > max;
        entries.truncate(max);
        let mut news = news(LibraryState::Full);
        let at = entries.last().map(|(usn, ..)| **usn).filter(|_| more);
        for (usn, key, value) in entries {
            if value.is_some() {
                add(&mut news, *usn, key, value.as_ref());
            }
        }
        let cursor = Cursor {
            epoch: start.epoch,
            position: at,
            ..self.cursor(start.usn)
        };
        news.cursor = Some(cursor.to_string());
        news.more = more;
        news
    }

    fn cursor(&self, usn: u64) -> Cursor {
        Cursor {
            epoch: self.epoch,
            nonce: self.openings.last().map_or(0, |(nonce, _)| *nonce),
            seen: self.count,
            usn,
            position: None,
        }
    }
}

impl Cursor {
    fn parse(text: &str) -> Self {
        let mut parts = text.split('.').map(|part| part.parse().expect("a number"));
        let mut part = || parts.next();
        Self {
            epoch: part().expect("an epoch"),
            nonce: part().expect("a nonce"),
            seen: part().expect("a USN"),
            usn: part().expect("a USN"),
            position: part(),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{}.{}.{}",
            self.epoch, self.nonce, self.seen, self.usn
        )?;
        match self.position {
            Some(position) => write!(f, ".{position}"),
            None => Ok(()),
        }
    }
}

/// The server and account of all answers.
pub(crate) fn binding() -> Binding {
    Binding {
        server: "server".to_owned(),
        account: "113".to_owned(),
    }
}

/// The USN of a cursor.
pub(crate) fn usn_of_cursor(cursor: &str) -> Usn {
    Usn::new(Cursor::parse(cursor).usn)
}

/// The update count when a cursor was made.
pub(crate) fn count_at_cursor(cursor: &str) -> u64 {
    Cursor::parse(cursor).seen
}

pub(crate) fn news(state: LibraryState) -> LibraryNews {
    LibraryNews::empty(ACCOUNT_LIBRARY, state)
}

fn add(news: &mut LibraryNews, usn: u64, key: &ObjectKey, value: Option<&Value>) {
    let (key, usn) = (key.clone(), Usn::new(usn));
    match value {
        Some(value) => news.objects.push(SyncedObject {
            key,
            usn,
            value: RawJson::from(value),
        }),
        None => news.gone.push(Tombstone { key, usn }),
    }
}

fn sha256(text: &str) -> String {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text that the server refuses in a value.
pub(crate) const REFUSED: &str = "refused";

/// A post that the account cannot see. The server leaves it out of filters.
pub(crate) const UNSEEN_POST: &str = "9";
