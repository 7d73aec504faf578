//! A device around the real machine: its store is a map, and each transaction is one assignment.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
};

use driftline_core::sync::{
    Binding, ChangeResult, Conflict, ConflictReason, DeviceIdentity, Intake, LibraryProgress,
    LocalObject, MAX_PUSH_CHANGES, ObjectKey, Outcome, PushAnswer, StoredPush, SweepMode,
    SyncAnswer, SyncSession, SyncStep, Usn, incoming, next_push, pushed, same_value, sweep,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::{
    ledger::{Ledger, Presence, is_member},
    model_server::{Server, ServerStore, count_at_cursor, usn_of_cursor},
};

/// A device.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub(crate) store: ReplicaStore,
    session: Option<SyncSession>,
    answer: Option<Answer>,
}

/// The state that survives a crash.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReplicaStore {
    pub(crate) objects: BTreeMap<ObjectKey, LocalObject>,
    pub(crate) conflicts: Vec<ListedConflict>,
    pub(crate) progress: LibraryProgress,
    binding: Option<Binding>,
    pub(crate) identity: DeviceIdentity,
    pub(crate) push: Option<StoredPush>,
    generation: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ListedConflict {
    pub(crate) conflict: Conflict,
    pub(crate) is_resolved: bool,
}

/// An answer that the device has, but has not taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Answer {
    Pull(SyncAnswer),
    Push(Result<PushAnswer, ()>),
}

/// The probabilities of faults, of each request or transaction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) crash: f64,
    /// The largest number of entries of a chunk.
    pub(crate) max_chunk: usize,
}

/// The surroundings of a device.
pub(crate) struct Surroundings<'a> {
    pub(crate) server: &'a mut Server,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) rng: &'a mut ChaCha8Rng,
    pub(crate) faults: Faults,
    /// Bodies of pushes that the server gets later.
    pub(crate) late: &'a mut Vec<String>,
}

impl Replica {
    pub(crate) fn new(bits: u128) -> Self {
        Self::with_store(ReplicaStore {
            objects: BTreeMap::new(),
            conflicts: Vec::new(),
            progress: LibraryProgress::default(),
            binding: None,
            identity: DeviceIdentity::new(bits),
            push: None,
            generation: 0,
        })
    }

    pub(crate) fn with_store(store: ReplicaStore) -> Self {
        Self {
            store,
            session: None,
            answer: None,
        }
    }

    /// The device stops; its store stays.
    pub(crate) fn crash(&mut self) {
        self.session = None;
        self.answer = None;
    }

    /// True if the answer to a push is on its way to the device.
    pub(crate) fn awaits_push(&self) -> bool {
        matches!(self.answer, Some(Answer::Push(_)))
    }

    /// True if the answer to a pull is on its way to the device.
    pub(crate) fn awaits_pull(&self) -> bool {
        matches!(self.answer, Some(Answer::Pull(_)))
    }

    /// True between the start and the end of a synchronization.
    pub(crate) fn is_synchronizing(&self) -> bool {
        self.session.is_some()
    }

    /// True if the next step builds a push and stores it.
    pub(crate) fn stores_push_next(&self) -> bool {
        let is_pushing = |session: &SyncSession| session.next() == SyncStep::Push;
        self.answer.is_none()
            && self.session.as_ref().is_some_and(is_pushing)
            && self.store.push.is_none()
    }

    /// Ends a synchronization that has nothing left to do, or that a new one would continue in the same way.
    pub(crate) fn end_needless_session(&mut self) {
        let store = &self.store;
        let is_needless = |session: &SyncSession| match session.next() {
            SyncStep::Push => {
                store.push.is_none() && !store.objects.values().any(LocalObject::is_dirty)
            }
            SyncStep::Done => true,
            step => step == store.new_session().next(),
        };
        if self.answer.is_none() && self.session.as_ref().is_some_and(is_needless) {
            self.session = None;
        }
    }

    /// All that decides the device's further steps. A session also counts its answers, but ends long before its bounds.
    fn state(&self) -> (&ReplicaStore, Option<(SyncStep, bool)>, Option<&Answer>) {
        let next = self
            .session
            .as_ref()
            .map(|session| (session.next(), session.is_resending()));
        (&self.store, next, self.answer.as_ref())
    }

    /// One request, or one answer. Returns true at the end of a synchronization.
    pub(crate) fn step(&mut self, around: &mut Surroundings<'_>) -> bool {
        match self.answer.take() {
            Some(Answer::Pull(answer)) => self.take_pull(answer, around),
            Some(Answer::Push(answer)) => self.take_push(answer, around),
            None => return self.request(around),
        }
        self.check();
        false
    }

    fn request(&mut self, around: &mut Surroundings<'_>) -> bool {
        let store = &mut self.store;
        let session = self.session.get_or_insert_with(|| store.new_session());
        let faults = around.faults;
        match session.next() {
            SyncStep::Pull { cursor } => {
                if around.rng.random_bool(faults.loss) {
                    self.session = None;
                    return false;
                }
                let max = around.rng.random_range(1..=faults.max_chunk);
                let answer = around.server.pull(cursor.as_deref(), max);
                self.answer = Some(Answer::Pull(answer));
            }
            SyncStep::Push => {
                let full_sync = store.progress.full_sync;
                if store
                    .push
                    .take_if(|push| !push.is_current(full_sync))
                    .is_some()
                {
                    store.identity = DeviceIdentity::new(around.rng.random());
                }
                if store.push.is_none() {
                    let dirty = store.objects.values().filter(|object| object.is_dirty());
                    let next = next_push(
                        store.identity.clone(),
                        &store.progress,
                        dirty.cloned().collect(),
                        MAX_PUSH_CHANGES,
                    );
                    store.push = next.push;
                    if around.rng.random_bool(faults.crash) {
                        self.session = None;
                        return false;
                    }
                }
                let Some(push) = &store.push else {
                    session.nothing_to_push();
                    return false;
                };
                if around.rng.random_bool(faults.loss) {
                    // It may come yet.
                    if around.rng.random_bool(0.3) {
                        around.late.push(push.body.clone());
                    }
                    self.session = None;
                    return false;
                }
                let answer = around.server.push(&push.body);
                if around.rng.random_bool(faults.duplication) {
                    around.late.push(push.body.clone());
                }
                self.answer = Some(Answer::Push(answer));
            }
            SyncStep::Done => {
                self.session = None;
                return true;
            }
        }
        if around.rng.random_bool(faults.loss) {
            self.crash();
        }
        false
    }

    fn take_pull(&mut self, answer: SyncAnswer, around: &mut Surroundings<'_>) {
        let Some(session) = &mut self.session else {
            return;
        };
        let intake = session.pulled(answer).expect("a valid answer");
        let is_resending = session.is_resending();
        if around.rng.random_bool(around.faults.crash) {
            return self.crash();
        }
        if is_resending {
            return;
        }
        self.store.take(intake, around.server, around.ledger);
        if around.rng.random_bool(around.faults.crash) {
            self.crash();
        }
    }

    fn take_push(&mut self, answer: Result<PushAnswer, ()>, around: &mut Surroundings<'_>) {
        let (Some(session), Some(push)) = (&mut self.session, &self.store.push) else {
            return;
        };
        if around.rng.random_bool(around.faults.crash) {
            return self.crash();
        }
        match answer {
            Ok(answer) => {
                self.store.progress = session.pushed(push, &answer).expect("a valid answer");
                self.store.identity = DeviceIdentity::after(push);
                let push = self.store.push.take().expect("a push");
                let before = usn_of_cursor(&answer.before);
                assert_eq!(push.changes.len(), answer.results.len());
                for (sent, result) in push.changes.iter().zip(&answer.results) {
                    let local = self.store.objects.remove(&sent.key);
                    if matches!(result, ChangeResult::Done { usn, .. } if *usn <= before) {
                        around.ledger.forgive_addition(&sent.key);
                    }
                    let outcome = pushed(local.clone(), sent, result);
                    if let (Some(local), ChangeResult::Conflict { usn, value, .. }) =
                        (local, result)
                    {
                        check_server_change(&local, *usn, value.as_ref(), &outcome, around.ledger);
                    }
                    self.store.apply(outcome);
                }
            }
            Err(()) => {
                session.device_refused();
                self.store.push = None;
                self.store.identity = DeviceIdentity::new(around.rng.random());
            }
        }
        if around.rng.random_bool(around.faults.crash) {
            self.crash();
        }
    }

    fn check(&self) {
        for (key, object) in &self.store.objects {
            assert_eq!(*key, object.key);
            let base = object.base_value();
            let is_base = same_value(key.kind(), object.value.as_ref(), base);
            assert!(object.is_dirty() || is_base, "{object:?}");
        }
    }
}

impl PartialEq for Replica {
    fn eq(&self, other: &Self) -> bool {
        self.state() == other.state()
    }
}

impl Eq for Replica {}

impl Hash for Replica {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.state().hash(hasher);
    }
}

impl ReplicaStore {
    fn new_session(&self) -> SyncSession {
        let is_deleted = |key: &ObjectKey| {
            let object = self.objects.get(key);
            object.is_some_and(|object| object.is_dirty() && object.value.is_none())
        };
        let decides = |push: &&StoredPush| push.added_members().any(is_deleted);
        SyncSession::new(self.progress.clone(), self.binding.clone())
            .with_stored_push(self.push.as_ref().filter(decides))
    }

    /// True if the replica has everything up to this cursor.
    pub(crate) fn is_at(&self, cursor: &str) -> bool {
        let progress = &self.progress;
        progress.cursor.as_deref() == Some(cursor)
            && progress.is_complete()
            && progress.ahead.is_none()
    }

    /// True if the living objects of the server are those that the replica believes it to have.
    pub(crate) fn has_living_objects_of(&self, server: &ServerStore) -> bool {
        let mine = self.objects.iter();
        let mine: Vec<_> = mine
            .filter_map(|(key, object)| Some((key, object.base_usn().get(), object.base_value()?)))
            .collect();
        let theirs = server.objects.iter();
        let theirs: Vec<_> = theirs
            .filter_map(|(key, (usn, value))| Some((key, *usn, value.as_ref()?)))
            .collect();
        let mut pairs = mine.iter().zip(&theirs);
        mine.len() == theirs.len()
            && pairs.all(|((key, usn, mine), (its_key, its_usn, theirs))| {
                let is_same = same_value(key.kind(), Some(*mine), Some(*theirs));
                key == its_key && usn == its_usn && is_same
            })
    }

    /// The value that the device shows.
    pub(crate) fn value(&self, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(key)?.value.as_ref()
    }

    /// An edit on the device; the list's members are deleted with it.
    pub(crate) fn edit(&mut self, key: &ObjectKey, value: Option<&Value>, ledger: &mut Ledger) {
        let before = self.value(key).cloned();
        if value.is_none() {
            let of_list =
                |member: &&ObjectKey| member.list_and_acct().is_some_and(|(list, _)| list == *key);
            let members: Vec<_> = self.objects.keys().filter(of_list).cloned().collect();
            for member in members {
                self.edit(&member, None, ledger);
            }
        }
        self.generation += 1;
        let is_sent = self
            .push
            .as_ref()
            .is_some_and(|push| push.change(key).is_some());
        let object = match self.objects.remove(key) {
            Some(local) => local.edit(value.cloned(), self.generation, is_sent),
            None => value
                .cloned()
                .map(|value| LocalObject::added(key.clone(), value, self.generation)),
        };
        let is_addition = object
            .as_ref()
            .is_some_and(|object| object.base_value().is_none());
        ledger.edit(key, before.as_ref(), value, is_addition);
        self.objects
            .extend(object.map(|object| (key.clone(), object)));
    }

    /// The keys of what was added and not yet pushed.
    pub(crate) fn additions(&self) -> impl Iterator<Item = &ObjectKey> {
        let added = self.objects.values().filter(|object| is_addition(object));
        added.map(|object| &object.key)
    }

    /// Adds all that the store has.
    pub(crate) fn add_to(&self, presence: &mut Presence) {
        for (key, object) in &self.objects {
            presence.add(key, object.value.as_ref());
            presence.add(key, object.base_value());
        }
        for change in self.push.iter().flat_map(|push| &push.changes) {
            presence.add(&change.key, change.value.as_ref());
        }
        for listed in &self.conflicts {
            presence.add(&listed.conflict.key, listed.conflict.value.as_ref());
        }
    }

    fn take(&mut self, intake: Intake, server: &Server, ledger: &mut Ledger) {
        // What the replica has beyond its cursor may be of another history too, until that is checked.
        let is_reconciled = intake.progress.paging == Some(SweepMode::Reconcile)
            || intake.progress.sweep == Some(SweepMode::Reconcile)
            || intake.sweep == Some(SweepMode::Reconcile)
            || (server.is_restored && self.progress.ahead.is_some());
        self.binding = Some(intake.binding);
        for theirs in &intake.entries {
            let local = self.objects.remove(&theirs.key);
            let sent = self.push.as_ref().and_then(|push| push.change(&theirs.key));
            let outcome = incoming(local.clone(), theirs, sent);
            let is_clean = outcome
                .object
                .as_ref()
                .is_some_and(|object| !object.is_dirty());
            if is_clean && local.as_ref().is_some_and(is_addition) {
                ledger.forgive_addition(&theirs.key);
            }
            if let Some(local) = &local {
                check_server_change(local, theirs.usn, theirs.value.as_ref(), &outcome, ledger);
            }
            if let Some(local) = local.filter(|_| is_reconciled) {
                forgive(&local, &outcome, theirs.usn, ledger);
                // It counts as the same addition, although whoever deletes it has not seen the one that was lost.
                if theirs.usn >= server.first_usn() {
                    ledger.forgive_addition(&theirs.key);
                }
            }
            assert!(server.is_restored || !is_loss(&outcome), "{outcome:?}");
            self.apply(outcome);
        }
        if let Some(mode) = intake.sweep {
            let cursor = intake.progress.cursor.as_deref().expect("a cursor");
            let count = count_at_cursor(cursor);
            for local in std::mem::take(&mut self.objects).into_values() {
                let key = local.key.clone();
                let outcome = sweep(local, intake.progress.full_sync, mode);
                if is_loss(&outcome) {
                    assert!(server.is_restored, "{outcome:?}");
                    let there = server.store.objects.get(&key);
                    let there = there.filter(|(usn, value)| value.is_some() && *usn <= count);
                    assert_eq!(there, None, "{outcome:?}");
                }
                self.apply(outcome);
            }
        }
        self.progress = intake.progress;
    }

    fn apply(&mut self, outcome: Outcome) {
        let object = outcome.object;
        self.objects
            .extend(object.map(|object| (object.key.clone(), object)));
        self.conflicts
            .extend(outcome.conflict.map(|conflict| ListedConflict {
                is_resolved: matches!(
                    conflict.reason,
                    ConflictReason::Merged | ConflictReason::Refused
                ),
                conflict,
            }));
    }
}

/// True if a version is listed as lost by the server.
fn is_loss(outcome: &Outcome) -> bool {
    let conflict = outcome.conflict.as_ref();
    conflict.is_some_and(|conflict| conflict.reason == ConflictReason::LostByServer)
}

/// A version that differs from the base of an edit only in what the server gives is no conflict. If others have changed it and
/// back since, the edit has seen the value.
fn check_server_change(
    local: &LocalObject,
    usn: Usn,
    theirs: Option<&Value>,
    outcome: &Outcome,
    ledger: &mut Ledger,
) {
    let base = local.base_value();
    let added = |value: Option<&Value>| value.and_then(|value| value.get("added")).cloned();
    let is_same_addition =
        !is_member(&local.key) || added(base).is_some() && added(base) == added(theirs);
    let is_same = theirs.is_some() && same_value(local.key.kind(), theirs, base);
    if local.is_dirty() && usn > local.base_usn() && is_same && is_same_addition {
        assert!(outcome.conflict.is_none(), "{local:?} {usn} {theirs:?}");
        let kept = outcome.object.as_ref();
        let kept = kept.and_then(|object| object.value.as_ref());
        ledger.forgive(&local.key, theirs, kept);
    }
}

fn is_addition(object: &LocalObject) -> bool {
    object.is_dirty() && object.value.is_some() && object.base_value().is_none()
}

/// A server that lost changes may have given an object a higher USN since: the specification takes that for a later version
/// of it. And a set has no values by which two additions with one USN differ.
fn forgive(local: &LocalObject, outcome: &Outcome, theirs: Usn, ledger: &mut Ledger) {
    let is_newer = theirs > local.base_usn();
    let kept = outcome
        .object
        .as_ref()
        .and_then(|object| object.value.as_ref());
    if is_newer && outcome.conflict.is_none() {
        ledger.forgive(&local.key, local.value.as_ref(), kept);
        ledger.forgive(&local.key, local.base_value(), kept);
    }
    if theirs < local.base_usn() || (local.value.is_none() && kept.is_none()) {
        ledger.forgive_addition(&local.key);
    }
}
