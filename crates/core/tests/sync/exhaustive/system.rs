use std::sync::Arc;

use driftline_core::sync::{ConflictReason, ObjectKey, ObjectKind};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use stateright::{Model, Property};

use crate::{
    cluster,
    ledger::Ledger,
    model_replica::{Faults, Replica, Surroundings},
    model_server::{Flaw, Server, ServerStore},
};

/// A server and two devices.
#[derive(Debug, Clone)]
pub(crate) struct System {
    objects: [ObjectKey; 2],
    budget: Budget,
    flaw: Option<Flaw>,
}

/// The numbers of events. Losses and crashes have no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    pub(crate) edits: u8,
    /// Copies of pushes that the server gets at any later time.
    pub(crate) copies: u8,
    pub(crate) collections: u8,
    pub(crate) restores: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SystemState {
    server: Server,
    replicas: Vec<Replica>,
    ledger: Ledger,
    left: Budget,
    /// The body of a push on its way to the server.
    copy: Option<String>,
    backup: Option<Arc<ServerStore>>,
}

/// Devices and objects are named by their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// The device adds or changes the object.
    Change(usize, usize),
    Delete(usize, usize),
    /// The device pulls a chunk, or sends a push, or takes the answer to it.
    Step(usize),
    /// The device stores a push, and the request is lost.
    SendInVain(usize),
    /// The device starts again. An answer on its way is lost.
    Crash(usize),
    /// The request of the device's stored push is doubled.
    Copy(usize),
    DeliverCopy,
    Collect,
    BackUp,
    Restore,
}

impl System {
    pub(crate) fn new(objects: [&str; 2], budget: Budget, flaw: Option<Flaw>) -> Self {
        Self {
            objects: objects.map(|key| ObjectKey::parse(key).expect("a key")),
            budget,
            flaw,
        }
    }

    /// The actions of a device.
    fn device_actions(&self, state: &SystemState, device: usize, actions: &mut Vec<Action>) {
        let replica = &state.replicas[device];
        actions.push(Action::Step(device));
        if replica.is_synchronizing() {
            actions.push(Action::Crash(device));
        }
        if replica.stores_push_next() {
            actions.push(Action::SendInVain(device));
        }
        let is_sent = replica.store.push.is_some() && !replica.awaits_push();
        if is_sent && state.left.copies > 0 && state.copy.is_none() {
            actions.push(Action::Copy(device));
        }
        // The devices are alike: the first edit is made on the first one.
        let may_edit = device == 0 || state.left.edits < self.budget.edits;
        if !may_edit || state.left.edits == 0 {
            return;
        }
        for (number, key) in self.objects.iter().enumerate() {
            let is_there = replica.store.value(key).is_some();
            if !is_there || key.kind() != Some(ObjectKind::Bookmark) {
                actions.push(Action::Change(device, number));
            }
            if is_there && key.kind() != Some(ObjectKind::Marker) {
                actions.push(Action::Delete(device, number));
            }
        }
    }
}

impl Model for System {
    type State = SystemState;
    type Action = Action;

    fn init_states(&self) -> Vec<SystemState> {
        vec![SystemState {
            server: Server::with_flaw(self.flaw),
            replicas: vec![Replica::new(1), Replica::new(2)],
            ledger: Ledger::default(),
            left: self.budget,
            copy: None,
            backup: None,
        }]
    }

    fn actions(&self, state: &SystemState, actions: &mut Vec<Action>) {
        // An answer to a push changes its device alone, so the others may as well act after it.
        if let Some(device) = state.replicas.iter().position(Replica::awaits_push) {
            return self.device_actions(state, device, actions);
        }
        for device in 0..state.replicas.len() {
            self.device_actions(state, device, actions);
        }
        if state.copy.is_some() {
            actions.push(Action::DeliverCopy);
        }
        let mut objects = state.server.store.objects.values();
        if state.left.collections > 0 && objects.any(|(_, value)| value.is_none()) {
            actions.push(Action::Collect);
        }
        match &state.backup {
            None if state.left.restores > 0 => actions.push(Action::BackUp),
            Some(store) if **store != state.server.store => actions.push(Action::Restore),
            _ => {}
        }
    }

    fn next_state(&self, last: &SystemState, action: Action) -> Option<SystemState> {
        let mut state = last.clone();
        match action {
            Action::Change(device, object) => {
                let number = self.budget.edits - state.left.edits + 1;
                let key = &self.objects[object];
                state.edit(device, key, Some(&value(key, number)));
            }
            Action::Delete(device, object) => state.edit(device, &self.objects[object], None),
            Action::Step(device) => {
                state.step(device, Faults::default());
                if state.replicas[device].awaits_pull() {
                    state.step(device, Faults::default());
                }
                state.replicas[device].end_needless_session();
            }
            Action::SendInVain(device) => {
                let crash = Faults {
                    crash: 1.0,
                    ..Faults::default()
                };
                state.step(device, crash);
            }
            Action::Crash(device) => state.replicas[device].crash(),
            Action::Copy(device) => {
                state.left.copies -= 1;
                let push = state.replicas[device].store.push.as_ref()?;
                state.copy = Some(push.body.clone());
            }
            Action::DeliverCopy => {
                let body = state.copy.take()?;
                // The answer is lost.
                let _ = state.server.push(&body);
            }
            Action::Collect => {
                state.left.collections -= 1;
                state.server.collect(state.server.store.count);
            }
            Action::BackUp => {
                state.left.restores -= 1;
                state.backup = Some(Arc::new(state.server.store.clone()));
            }
            Action::Restore => {
                let store = state.backup.take()?;
                state.restore(Arc::unwrap_or_clone(store));
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(KEPT, |_, state: &SystemState| state.keeps_edits()),
            Property::always(EQUAL, |_, state: &SystemState| state.current_are_equal()),
            Property::always(SETTLES, |_, state: &SystemState| {
                !state.is_quiet() || state.settle().is_ok()
            }),
            // Or the laws would hold because nothing happens.
            Property::sometimes(CONFLICT, |_, state: &SystemState| {
                state.has_conflict(ConflictReason::Changed)
                    || state.has_conflict(ConflictReason::Merged)
            }),
            Property::sometimes(LOST_ANSWER, |_, state: &SystemState| {
                let mut replicas = state
                    .replicas
                    .iter()
                    .filter(|replica| !replica.awaits_push());
                replicas.any(|replica| {
                    let push = replica.store.push.as_ref();
                    push.is_some_and(|push| state.server.has_push(push))
                })
            }),
            Property::sometimes(FULL_AGAIN, |_, state: &SystemState| {
                let mut replicas = state.replicas.iter();
                replicas.any(|replica| replica.store.progress.full_sync > 1)
            }),
            Property::sometimes(LOST_BY_SERVER, |_, state: &SystemState| {
                state.has_conflict(ConflictReason::LostByServer)
            }),
            Property::sometimes(NEW_IDENTITY, |_, state: &SystemState| {
                let mut replicas = state.replicas.iter().zip(1_u128..);
                replicas.any(|(replica, number)| {
                    replica.store.identity.device != format!("{number:032x}")
                })
            }),
        ]
    }
}

impl SystemState {
    fn edit(&mut self, device: usize, key: &ObjectKey, value: Option<&Value>) {
        self.left.edits -= 1;
        self.replicas[device]
            .store
            .edit(key, value, &mut self.ledger);
    }

    /// One request of a device, or one answer. Returns true at the end of its synchronization.
    fn step(&mut self, device: usize, faults: Faults) -> bool {
        let replica = &mut self.replicas[device];
        // A new identity follows from the old one.
        let digits = &replica.store.identity.device[16..];
        let seed = u64::from_str_radix(digits, 16).expect("hexadecimal digits");
        replica.step(&mut Surroundings {
            server: &mut self.server,
            ledger: &mut self.ledger,
            rng: &mut ChaCha8Rng::seed_from_u64(seed),
            faults: Faults {
                max_chunk: 1,
                ..faults
            },
            late: &mut Vec::new(),
        })
    }

    fn restore(&mut self, store: ServerStore) {
        let before = cluster::presence(&self.server, &self.replicas);
        let count = store.count;
        cluster::forgive_lost_additions(&self.server, &self.replicas, &mut self.ledger, count);
        self.server.restore(store);
        // Connections do not outlive the server.
        self.copy = None;
        for replica in &mut self.replicas {
            replica.crash();
        }
        let after = cluster::presence(&self.server, &self.replicas);
        self.ledger.lose(&before, &after);
    }

    fn keeps_edits(&self) -> bool {
        let presence = cluster::presence(&self.server, &self.replicas);
        self.ledger.check(&presence).is_ok()
    }

    fn current_are_equal(&self) -> bool {
        let cursor = self.server.cursor();
        let mut current = self
            .replicas
            .iter()
            .filter(|replica| replica.store.is_at(&cursor));
        current.all(|replica| replica.store.has_living_objects_of(&self.server.store))
    }

    /// True if no message is on its way. From all other states a loss leads to such a one.
    fn is_quiet(&self) -> bool {
        let mut replicas = self.replicas.iter();
        self.copy.is_none() && !replicas.any(Replica::is_synchronizing)
    }

    /// Synchronizes the devices one after the other, and resolves their conflicts, until nothing changes any more.
    ///
    /// # Errors
    /// What is wrong then.
    pub(crate) fn settle(&self) -> Result<(), String> {
        let mut state = self.clone();
        for _ in 0..MAX_ROUNDS {
            let count = state.server.store.count;
            let mut is_changed = false;
            for device in 0..state.replicas.len() {
                state.replicas[device].crash();
                let is_done = (0..MAX_STEPS).any(|_| state.step(device, Faults::default()));
                if !is_done {
                    return Err("a synchronization does not end".to_owned());
                }
                is_changed |= cluster::resolve(&mut state.replicas[device], &mut state.ledger);
            }
            if !is_changed && state.server.store.count == count {
                return cluster::check(&state.server, &state.replicas, &state.ledger);
            }
        }
        Err("the devices do not come to rest".to_owned())
    }

    fn has_conflict(&self, reason: ConflictReason) -> bool {
        let mut listed = self
            .replicas
            .iter()
            .flat_map(|replica| &replica.store.conflicts);
        listed.any(|listed| listed.conflict.reason == reason)
    }
}

/// The value of an edit.
fn value(key: &ObjectKey, number: u8) -> Value {
    match key.kind() {
        Some(ObjectKind::Note) => json!({"text": format!("t{number}")}),
        Some(ObjectKind::List) => json!({"title": format!("t{number}")}),
        Some(ObjectKind::Marker) => json!({"last_read": number.to_string()}),
        _ => json!({}),
    }
}

/// Laws.
pub(crate) const KEPT: &str = "each edit is somewhere";
pub(crate) const EQUAL: &str = "a replica at the server's cursor has what the server has";
pub(crate) const SETTLES: &str = "synchronization ends, with equal contents and no edit lost";

/// Examples.
pub(crate) const CONFLICT: &str = "two edits meet";
pub(crate) const LOST_ANSWER: &str = "the answer to a push is lost";
pub(crate) const FULL_AGAIN: &str = "a full sync comes again";
pub(crate) const LOST_BY_SERVER: &str = "a change that the server lost is listed";
pub(crate) const NEW_IDENTITY: &str = "a device takes a new identity";

/// A settling system needs fewer.
const MAX_ROUNDS: usize = 10;
const MAX_STEPS: usize = 1_000;
