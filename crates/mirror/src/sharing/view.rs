//! What a look at the store shows, and what follows for this process.

use std::collections::{HashMap, HashSet};

use driftline_core::sharing::{Division, Member, Work};
use driftline_store::{
    InstanceId, SourceId, StoreError, Tx, database_clock,
    instance::Instance,
    refresh::Shards,
    sharing::{
        change::{self, Change},
        member::{self, MemberRow, Refusals},
    },
    source::{self, Source},
};

/// All that the division of the work depends on.
pub(crate) struct SharedWork {
    /// Read before everything else, so that what is older than the rest is seen to be.
    pub(crate) change: Change,
    pub(crate) sources: Vec<Source>,
    instances: Vec<Instance>,
    members: Vec<MemberRow>,
    /// By the database's clock, Unix ms.
    now_ms: i64,
}

/// What this process is to do.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) sources: Vec<Source>,
    pub(crate) instances: Vec<Instance>,
    /// Sources that are to be read here.
    pub(crate) own: HashSet<SourceId>,
    /// Sources that nobody holds.
    pub(crate) free: HashSet<SourceId>,
    /// Sources that this process holds and is to give back.
    pub(crate) give_back: HashSet<SourceId>,
    /// Whether this process takes part: it has a share, and does not drain.
    pub(crate) is_active: bool,
    /// Sources to be read that nobody can read now.
    pub(crate) unable: HashSet<SourceId>,
    /// The shards of due times that are looked at here.
    pub(crate) shards: HashMap<InstanceId, Shards>,
    /// How many shards these are.
    pub(crate) buckets: usize,
    /// Instances whose posts nobody can refresh now.
    pub(crate) unrefreshed: HashSet<InstanceId>,
    /// How many members have a lease.
    pub(crate) members: usize,
    /// Whether something is this process's as soon as a lease ends, which raises no number.
    pub(crate) awaits_end: bool,
    /// When the first lease of a source ends whose holder is no live member, ms from the look: nothing
    /// else tells that it is free then.
    pub(crate) next_end_ms: Option<i64>,
}

impl SharedWork {
    pub(crate) fn read(tx: &mut Tx<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            change: change::current(tx)?,
            sources: source::list(tx)?,
            instances: source::instances(tx)?,
            members: member::list(tx)?,
            now_ms: database_clock::now_ms(tx)?,
        })
    }

    pub(crate) fn is_live(&self, name: &str) -> bool {
        self.live().any(|member| member.name == name)
    }

    fn live(&self) -> impl Iterator<Item = &MemberRow> {
        let now_ms = self.now_ms;
        let live =
            move |member: &&MemberRow| database_clock::is_live(member.lease_until_ms, now_ms);
        self.members.iter().filter(live)
    }
}

impl View {
    /// What `me` is to do, whose refusals are newer than its row.
    pub(crate) fn new(seen: SharedWork, me: &str, is_member: bool, refusals: &Refusals) -> Self {
        let mut members = vec![Member {
            name: me.to_owned(),
            share: 1,
            is_draining: false,
        }];
        let mut refused: Vec<(&str, &Refusals)> = vec![(me, refusals)];
        if is_member {
            members.clear();
            for row in seen.live() {
                members.push(Member {
                    name: row.name.clone(),
                    share: row.share,
                    is_draining: row.is_draining,
                });
                if row.name != me {
                    refused.push((&row.name, &row.refusals));
                }
            }
        }
        let is_active = |member: &Member| member.share > 0 && !member.is_draining;
        let mut view = Self {
            members: seen.live().count(),
            is_active: members
                .iter()
                .any(|member| member.name == me && is_active(member)),
            ..Self::default()
        };
        view.share_sources(&seen, me, &members, &refused);
        view.share_buckets(&seen, me, members, &refused);
        view.sources = seen.sources;
        view.instances = seen.instances;
        view
    }

    fn share_sources(
        &mut self,
        seen: &SharedWork,
        me: &str,
        members: &[Member],
        refused: &[(&str, &Refusals)],
    ) {
        let mut work = Vec::new();
        let mut ending = HashSet::new();
        for source in &seen.sources {
            if source.paused || !source.kind.is_polled() {
                continue;
            }
            let id = source.id;
            let holding = source.holding.as_ref();
            let is_live = |until_ms| database_clock::is_live(until_ms, seen.now_ms);
            let holding = holding.filter(|holding| is_live(holding.until_ms));
            let holder = holding.map(|holding| holding.holder.clone());
            if let Some(holding) = holding
                && !members.iter().any(|member| member.name == holding.holder)
            {
                let left_ms = holding.until_ms - seen.now_ms;
                self.next_end_ms = Some(self.next_end_ms.map_or(left_ms, |ms| ms.min(left_ms)));
            }
            match &holder {
                None => {
                    self.free.insert(id);
                }
                Some(holder) if members.iter().any(|member| member.name == *holder) => {}
                Some(holder) if seen.members.iter().any(|row| row.name == *holder) => {
                    ending.insert(id);
                }
                // Held beside the members, as by a command: it is not theirs to share now.
                Some(_) => continue,
            }
            work.push(Work {
                key: id,
                holder,
                refused_by: refusing(refused, |refusals| refusals.sources.contains(&id)),
            });
        }
        let is_refused = |work: &Work<SourceId>| {
            let active = |member: &&Member| member.share > 0 && !member.is_draining;
            let mut active = members.iter().filter(active);
            active.all(|member| work.refused_by.contains(&member.name))
        };
        self.unable = work
            .iter()
            .filter(|work| is_refused(work))
            .map(|work| work.key)
            .collect();
        let division = Division::new(members.to_vec(), work);
        self.own = division.of(me).copied().collect();
        let moves = division.moves(me);
        self.give_back = moves.give_back.into_iter().collect();
        self.awaits_end = moves.awaited.iter().any(|id| ending.contains(id));
    }

    /// Nobody holds a bucket: claims of posts have leases of their own, and this is only about who
    /// looks where. Runs of neighbours keep most instances whole, so that batches are full.
    fn share_buckets(
        &mut self,
        seen: &SharedWork,
        me: &str,
        members: Vec<Member>,
        refused: &[(&str, &Refusals)],
    ) {
        let mut work = Vec::new();
        for instance in &seen.instances {
            let refused_by = refusing(refused, |refusals| {
                refusals.refreshing || refusals.instances.contains(&instance.id)
            });
            let can = |member: &Member| {
                member.share > 0 && !member.is_draining && !refused_by.contains(&member.name)
            };
            if !members.iter().any(can) {
                self.unrefreshed.insert(instance.id);
            }
            work.extend(Shards::ALL.iter().map(|shard| Work {
                key: (instance.id, shard),
                holder: None,
                refused_by: refused_by.clone(),
            }));
        }
        let division = Division::new(members, work);
        for (instance, shard) in division.of(me) {
            self.shards
                .entry(*instance)
                .or_insert(Shards::NONE)
                .insert(*shard);
            self.buckets += 1;
        }
    }
}

fn refusing(refused: &[(&str, &Refusals)], is_refused: impl Fn(&Refusals) -> bool) -> Vec<String> {
    let refusing = refused.iter().filter(|(_, refusals)| is_refused(refusals));
    refusing.map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use driftline_db::testing::databases;
    use driftline_store::{
        Root, SourceKey, Store, local_ids,
        sharing::member::{Beat, Beaten},
        source_lease,
        testing::new_source,
    };

    use super::*;

    /// No lease is longer than ten minutes.
    const LONG_MS: i64 = 300_000;

    async fn add(store: &Store, name: &'static str) -> SourceKey {
        let add = store.write(local_ids::root(), move |tx| {
            source::add(tx, &new_source(name), 0)
        });
        add.await.unwrap().unwrap()
    }

    async fn claim(store: &Store, source: SourceKey, holder: &'static str, ttl_ms: i64) {
        let claim = store.write(Root::none(), move |tx| {
            source_lease::claim(tx, source, holder, ttl_ms)
        });
        assert!(claim.await.unwrap().is_some());
    }

    async fn join(store: &Store, name: &str, share: u32, refusals: Refusals, ttl_ms: i64) {
        let beat = Beat {
            name: name.to_owned(),
            nonce: name.to_owned(),
            version: String::new(),
            share,
            was_draining: false,
            refusals,
            sources: 0,
            buckets: 0,
            ttl_ms,
        };
        let joined = store.write(Root::none(), move |tx| member::beat(tx, &beat, false));
        assert_eq!(joined.await.unwrap(), Beaten::Joined { is_draining: false });
    }

    async fn view(store: &Store, me: &str, is_member: bool, refusals: &Refusals) -> View {
        let seen = store.read(SharedWork::read).await.unwrap();
        View::new(seen, me, is_member, refusals)
    }

    fn refusing(sources: &[SourceId]) -> Refusals {
        Refusals {
            sources: sources.iter().copied().collect(),
            ..Refusals::default()
        }
    }

    #[tokio::test]
    async fn only_what_members_can_do_is_shared() {
        for fresh in databases() {
            let opened = tokio::task::spawn_blocking(move || Store::open(fresh.target)).await;
            let store = opened.unwrap().unwrap();
            let mut keys = Vec::new();
            for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
                keys.push(add(&store, name).await);
            }
            let none = Refusals::default();
            // No member: all that nobody holds.
            claim(&store, keys[0], "a command", LONG_MS).await;
            let alone = view(&store, "one", false, &none).await;
            assert_eq!((alone.own.len(), alone.members), (7, 0));
            assert!(alone.is_active && !alone.awaits_end);
            // "a" is held beside the members, "b" is paused, and neither member can read "c".
            let ids: Vec<SourceId> = keys.iter().map(|key| key.id).collect();
            let (b, c) = (keys[1], ids[2]);
            let pause = store.write(source::root(b), move |tx| source::set_paused(tx, b, true));
            pause.await.unwrap();
            join(&store, "one", 1, none.clone(), LONG_MS).await;
            join(&store, "two", 1, refusing(&[c, ids[3]]), LONG_MS).await;
            let mine = refusing(&[c]);
            let one = view(&store, "one", true, &mine).await;
            let two = view(&store, "two", true, &refusing(&[c, ids[3]])).await;
            assert_eq!(one.unable, HashSet::from([c]));
            // Its own refusals are newer than its row, which others go by.
            assert_eq!((one.own.len(), one.members), (3, 2));
            assert!(one.own.contains(&ids[3]) && !two.own.contains(&ids[3]));
            assert_eq!((one.buckets, two.buckets), (4, 4));
            // What a dead member holds is waited for.
            join(&store, "dead", 0, none.clone(), 1).await;
            for key in &keys[3..] {
                claim(&store, *key, "dead", LONG_MS).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            let one = view(&store, "one", true, &mine).await;
            assert!(one.awaits_end && one.members == 2 && one.own.len() == 3);
            assert!(!one.own.iter().any(|id| one.free.contains(id)));
            store.close().await;
        }
    }
}
