//! A server, its devices, and what happens to them.

use driftline_core::sync::{ObjectKey, ObjectKind};
use rand::{RngExt, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::{
    cluster,
    ledger::{Ledger, Presence, place},
    model_replica::{Faults, Replica, ReplicaStore, Surroundings},
    model_server::{REFUSED, Server, ServerStore, UNSEEN_POST},
};

/// A run of one seed.
#[derive(Debug)]
pub(crate) struct World {
    server: Server,
    replicas: Vec<Replica>,
    ledger: Ledger,
    rng: ChaCha8Rng,
    faults: Faults,
    disasters: Vec<Disaster>,
    /// The objects of this run, by their places in [`World::any_key`].
    kinds: Vec<u8>,
    late: Vec<String>,
    server_backup: Option<ServerStore>,
    backups: Vec<Option<ReplicaStore>>,
    lists: Vec<ObjectKey>,
    tokens: u64,
}

/// Events of a server or device as a whole.
#[derive(Debug, Clone, Copy)]
enum Disaster {
    ServerRestart,
    ServerRestored,
    EpochRaised,
    TombstonesCollected,
    DeviceRestored,
    DeviceCloned,
}

const DISASTERS: [Disaster; 6] = [
    Disaster::ServerRestart,
    Disaster::ServerRestored,
    Disaster::EpochRaised,
    Disaster::TombstonesCollected,
    Disaster::DeviceRestored,
    Disaster::DeviceCloned,
];

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut some = |largest: f64| match rng.random_bool(0.5) {
            true => rng.random_range(0.0..largest),
            false => 0.0,
        };
        let faults = Faults {
            loss: some(0.3),
            duplication: some(0.5),
            crash: some(0.2),
            max_chunk: 1 + (some(5.0) as usize),
        };
        let disasters = DISASTERS
            .into_iter()
            .filter(|_| rng.random_bool(0.35))
            .collect();
        let mut kinds: Vec<u8> = (0..KINDS).collect();
        if rng.random_bool(0.7) {
            kinds.retain(|kind| *kind == 0 || rng.random_bool(0.5));
        }
        Self {
            server: Server::default(),
            replicas: (0..3).map(|_| Replica::new(rng.random())).collect(),
            ledger: Ledger::default(),
            faults,
            disasters,
            kinds,
            late: Vec::new(),
            server_backup: None,
            backups: vec![None; 3],
            lists: Vec::new(),
            tokens: 0,
            rng,
        }
    }

    pub(crate) fn run(&mut self, events: usize) {
        for _ in 0..events {
            match self.rng.random_range(0..1_000) {
                0..620 => {
                    let replica = self.any_replica();
                    self.step(replica);
                }
                620..850 => self.edit_on_device(),
                850..910 => self.edit_on_server(),
                910..930 => self.change_by_others(),
                930..960 => self.deliver_late(),
                960..970 => self.server_backup = Some(self.server.store.clone()),
                970..980 => {
                    let replica = self.any_replica();
                    self.backups[replica] = Some(self.replicas[replica].store.clone());
                }
                980..985 => {
                    let replica = self.any_replica();
                    self.replicas[replica].crash();
                }
                _ => self.disaster(),
            }
        }
        self.settle();
    }

    fn any_replica(&mut self) -> usize {
        self.rng.random_range(0..self.replicas.len())
    }

    fn step(&mut self, replica: usize) -> bool {
        let mut around = Surroundings {
            server: &mut self.server,
            ledger: &mut self.ledger,
            rng: &mut self.rng,
            faults: self.faults,
            late: &mut self.late,
        };
        let is_done = self.replicas[replica].step(&mut around);
        self.forgive_ended();
        is_done
    }

    /// Other changes, or others than the account, end objects that they have not seen.
    fn forgive_ended(&mut self) {
        for (key, gone) in self.server.ended.drain(..) {
            self.ledger.forgive_addition(&key);
            self.ledger.forgive(&key, Some(&gone), None);
        }
    }

    /// A push comes again, or at last, and its answer is lost.
    fn deliver_late(&mut self) {
        if !self.late.is_empty() {
            let number = self.rng.random_range(0..self.late.len());
            let body = self.late.swap_remove(number);
            let _ = self.server.push(&body);
            self.forgive_ended();
        }
    }

    fn edit_on_device(&mut self) {
        let replica = self.any_replica();
        let key = self.any_key();
        let before = self.replicas[replica].store.value(&key).cloned();
        if let Some(after) = self.change(&key, before.as_ref(), true) {
            self.replicas[replica]
                .store
                .edit(&key, after.as_ref(), &mut self.ledger);
        }
    }

    fn edit_on_server(&mut self) {
        let key = match self.rng.random_bool(0.1) {
            true => ObjectKey::parse("later:1").expect("a key"),
            false => self.any_key(),
        };
        let before = self.server.store.value(&key).cloned();
        if let Some(after) = self.change(&key, before.as_ref(), false) {
            let refusal = after
                .as_ref()
                .and_then(|after| self.server.store.refusal(&key, after));
            if refusal.is_some() {
                return;
            }
            self.ledger
                .edit(&key, before.as_ref(), after.as_ref(), true);
            self.server.write(&key, after);
            self.forgive_ended();
        }
    }

    /// A followed account accepts a follow or ends it, or a bookmark has another copy of its post.
    fn change_by_others(&mut self) {
        let key = self.any_key();
        match key.kind() {
            Some(ObjectKind::Follow) if self.rng.random_bool(0.3) => self.server.end(&key),
            Some(ObjectKind::Follow | ObjectKind::Bookmark) => self.server.renew(&key),
            _ => {}
        }
        self.forgive_ended();
    }

    fn any_key(&mut self) -> ObjectKey {
        let rng = &mut self.rng;
        let kind = self.kinds.choose(rng).copied().unwrap_or(0);
        let number = rng.random_range(0..2);
        let text = match kind {
            0 | 1 => format!("bookmark:{}", rng.random_range(0..3)),
            2 => "favourite:0".to_owned(),
            3 => "marker:home".to_owned(),
            4 | 5 => format!("note:{number}"),
            6 | 7 => format!("follow:{number}@a.example"),
            8 => format!("block:{number}@a.example"),
            9 => format!("mute:{number}@a.example"),
            10 => format!("account-note:{number}@a.example"),
            11 => format!("draft:{number:032x}"),
            12 => format!("filter:{number:032x}"),
            13 => "profile:self".to_owned(),
            _ => match self.lists.choose(rng) {
                Some(list) if kind < 16 => list.as_str().to_owned(),
                Some(list) if kind == 16 => {
                    format!("list-member:{}:{number}@a.example", list.name())
                }
                _ => {
                    let list = ObjectKey::random(ObjectKind::List, rng.random());
                    self.lists.push(list.clone());
                    return list;
                }
            },
        };
        ObjectKey::parse(text).expect("a key")
    }

    /// A random edit; `None` if there is none.
    fn change(
        &mut self,
        key: &ObjectKey,
        before: Option<&Value>,
        may_be_refused: bool,
    ) -> Option<Option<Value>> {
        let is_deleted = before.is_some() && self.rng.random_bool(0.2);
        Some(match key.kind() {
            Some(ObjectKind::Marker) => {
                let place = place(key, before).unwrap_or(0) + self.rng.random_range(1..10);
                Some(json!({"last_read": place.to_string()}))
            }
            Some(
                ObjectKind::Bookmark
                | ObjectKind::Favourite
                | ObjectKind::ListMember
                | ObjectKind::Block,
            ) => before.is_none().then(|| json!({})),
            Some(ObjectKind::Profile) => Some(json!({"display_name": self.token()})),
            _ if is_deleted => None,
            Some(ObjectKind::Note | ObjectKind::AccountNote) => {
                Some(self.note(before, may_be_refused))
            }
            Some(ObjectKind::List) => Some(json!({"title": self.token()})),
            Some(ObjectKind::Filter) => {
                let mut posts = vec!["1", "2", UNSEEN_POST];
                posts.retain(|_| self.rng.random_bool(0.5));
                Some(json!({"title": self.token(), "posts": posts}))
            }
            Some(ObjectKind::Draft) => Some(json!({"text": self.token()})),
            Some(ObjectKind::Mute) => {
                self.tokens += 1;
                Some(json!({"expires_at": self.tokens}))
            }
            // A member more, so that each change of a follow has a token.
            Some(ObjectKind::Follow) => {
                Some(json!({"reblogs": self.rng.random_bool(0.5), "number": self.token()}))
            }
            None => Some(json!({"number": self.token()})),
        })
    }

    fn note(&mut self, before: Option<&Value>, may_be_refused: bool) -> Value {
        let text = before.and_then(|value| value["text"].as_str());
        let mut lines: Vec<String> = text
            .unwrap_or("1\n2\n3\n4\n5")
            .lines()
            .map(str::to_owned)
            .collect();
        let place = self.rng.random_range(0..=lines.len());
        match self.rng.random_range(0..4) {
            0 if place < lines.len() && lines.len() > 1 => {
                lines.remove(place);
            }
            1 if place < lines.len() => lines[place] = self.token(),
            _ => lines.insert(place, self.token()),
        }
        if may_be_refused && self.rng.random_bool(0.05) {
            lines.push(REFUSED.to_owned());
        }
        json!({"text": lines.join("\n")})
    }

    fn token(&mut self) -> String {
        self.tokens += 1;
        format!("t{}", self.tokens)
    }

    fn disaster(&mut self) {
        let Some(disaster) = self.disasters.choose(&mut self.rng).copied() else {
            return;
        };
        let before = self.presence();
        let replica = self.any_replica();
        match disaster {
            Disaster::ServerRestart => {
                self.server.restart();
                self.disconnect();
            }
            Disaster::ServerRestored => {
                if let Some(store) = self.server_backup.clone() {
                    cluster::forgive_lost_additions(
                        &self.server,
                        &self.replicas,
                        &mut self.ledger,
                        store.count,
                    );
                    self.server.restore(store);
                    self.disconnect();
                }
            }
            Disaster::EpochRaised => self.server.raise_epoch(),
            Disaster::TombstonesCollected => {
                let up_to = self.rng.random_range(0..=self.server.store.count);
                self.server.collect(up_to);
            }
            Disaster::DeviceRestored => {
                if let Some(store) = self.backups[replica].clone() {
                    for key in self.replicas[replica].store.additions() {
                        self.ledger.forgive_addition(key);
                    }
                    self.replicas[replica] = Replica::with_store(store);
                }
            }
            Disaster::DeviceCloned if self.replicas.len() < 5 => {
                let store = self.replicas[replica].store.clone();
                self.replicas.push(Replica::with_store(store));
                self.backups.push(None);
            }
            Disaster::DeviceCloned => {}
        }
        let after = self.presence();
        self.ledger.lose(&before, &after);
    }

    /// Connections do not outlive the server.
    fn disconnect(&mut self) {
        self.late.clear();
        for replica in &mut self.replicas {
            replica.crash();
        }
    }

    fn presence(&self) -> Presence {
        cluster::presence(&self.server, &self.replicas)
    }

    /// The faults end, and each conflict is resolved: *mine* is pushed again.
    fn settle(&mut self) {
        self.faults = Faults {
            max_chunk: self.faults.max_chunk,
            ..Faults::default()
        };
        while !self.late.is_empty() {
            self.deliver_late();
        }
        for _ in 0..20 {
            for replica in 0..self.replicas.len() {
                self.replicas[replica].crash();
                self.synchronize(replica);
                if cluster::resolve(&mut self.replicas[replica], &mut self.ledger) {
                    self.synchronize(replica);
                }
            }
        }
        let result = cluster::check(&self.server, &self.replicas, &self.ledger);
        assert_eq!(result, Ok(()));
    }

    fn synchronize(&mut self, replica: usize) {
        let is_done = (0..10_000).any(|_| self.step(replica));
        assert!(is_done, "the synchronization does not end");
    }
}

/// The number of places in [`World::any_key`].
const KINDS: u8 = 18;
