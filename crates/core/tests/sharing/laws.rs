//! Members that join, leave, die, drain and see old views come to even shares, in few moves.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::sharing::{Division, Member, Moves, Work};
use proptest::prelude::*;

/// The truth, and what each process last saw of it.
#[derive(Debug, Clone, Default)]
struct World {
    members: BTreeMap<String, Member>,
    /// Holder and refusals of each piece.
    work: BTreeMap<u32, (Option<String>, BTreeSet<String>)>,
    views: BTreeMap<String, Division<u32>>,
    given_back: usize,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Join(usize, u32),
    Leave(usize),
    Drain(usize, bool),
    Refuse(usize, u32, bool),
    Add(u32),
    Remove(u32),
    Look(usize),
    Act(usize),
}

fn name(number: usize) -> String {
    format!("member-{number}")
}

impl World {
    fn division(&self) -> Division<u32> {
        let work = self.work.iter().map(|(key, (holder, refused_by))| Work {
            key: *key,
            holder: holder.clone(),
            refused_by: refused_by.iter().cloned().collect(),
        });
        Division::new(self.members.values().cloned().collect(), work.collect())
    }

    fn moves(&self, of: &str) -> Moves<u32> {
        let view = self.views.get(of).filter(|_| self.members.contains_key(of));
        view.map(|view| view.moves(of)).unwrap_or_default()
    }

    fn look(&mut self, of: &str) {
        let division = self.division();
        self.views.insert(of.to_owned(), division);
    }

    /// As leases allow: only what is free is claimed, and only what is held given back.
    fn act(&mut self, of: &str) {
        let moves = self.moves(of);
        for key in moves.give_back {
            if let Some((holder, _)) = self.work.get_mut(&key)
                && holder.as_deref() == Some(of)
            {
                *holder = None;
                self.given_back += 1;
            }
        }
        for key in moves.claim {
            if let Some((holder, refused_by)) = self.work.get_mut(&key)
                && holder.is_none()
                && !refused_by.contains(of)
            {
                *holder = Some(of.to_owned());
            }
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Join(number, share) => {
                let member = Member {
                    name: name(number),
                    share,
                    is_draining: false,
                };
                self.members.insert(name(number), member);
            }
            Event::Leave(number) => {
                self.members.remove(&name(number));
                self.views.remove(&name(number));
                for (holder, _) in self.work.values_mut() {
                    holder.take_if(|holder| *holder == name(number));
                }
            }
            Event::Drain(number, is_draining) => {
                if let Some(member) = self.members.get_mut(&name(number)) {
                    member.is_draining = is_draining;
                }
            }
            Event::Refuse(number, key, refuses) => {
                let Some((holder, refused_by)) = self.work.get_mut(&key) else {
                    return;
                };
                if refuses {
                    refused_by.insert(name(number));
                    holder.take_if(|holder| *holder == name(number));
                } else {
                    refused_by.remove(&name(number));
                }
            }
            Event::Add(key) => {
                self.work.entry(key).or_default();
            }
            Event::Remove(key) => {
                self.work.remove(&key);
            }
            Event::Look(number) => self.look(&name(number)),
            Event::Act(number) => self.act(&name(number)),
        }
    }

    /// All look and act, in an order that changes from round to round.
    fn round(&mut self, turn: usize) {
        let mut names: Vec<String> = self.members.keys().cloned().collect();
        for name in &names {
            self.look(name);
        }
        let first = turn % names.len().max(1);
        names.rotate_left(first);
        for name in names {
            self.act(&name);
        }
    }

    fn load(&self, of: &str) -> usize {
        let holders = self
            .work
            .values()
            .filter(|(holder, _)| holder.as_deref() == Some(of));
        holders.count()
    }

    fn active(&self) -> Vec<&Member> {
        let all = self.members.values();
        all.filter(|member| !member.is_draining && member.share > 0)
            .collect()
    }

    fn is_able(&self, refused_by: &BTreeSet<String>) -> bool {
        self.active()
            .iter()
            .any(|member| !refused_by.contains(&member.name))
    }

    /// Each piece that somebody can do is held, by one who can; and nothing else is.
    fn check_held(&self) {
        let active: Vec<&str> = self.active().iter().map(|member| &*member.name).collect();
        for (key, (holder, refused_by)) in &self.work {
            assert_eq!(holder.is_some(), self.is_able(refused_by), "{key} {self:?}");
            if let Some(holder) = holder {
                assert!(active.contains(&&**holder) && !refused_by.contains(holder));
            }
        }
    }

    /// Every load is within one of the weighted fair share.
    fn check_fair(&self) {
        let active = self.active();
        let weight: f64 = active.iter().map(|member| f64::from(member.share)).sum();
        for member in active {
            let fair = self.work.len() as f64 * f64::from(member.share) / weight;
            let load = self.load(&member.name) as f64;
            assert!((load - fair).abs() < 1.0, "{load} of {fair}: {self:?}");
        }
    }
}

/// The first `refusing` members may refuse pieces.
fn event(refusing: usize) -> impl Strategy<Value = Event> {
    let (member, key) = (0..8_usize, 0..60_u32);
    prop_oneof![
        3 => (member.clone(), 0..4_u32).prop_map(|(number, share)| Event::Join(number, share)),
        2 => member.clone().prop_map(Event::Leave),
        1 => (member.clone(), any::<bool>()).prop_map(|(number, on)| Event::Drain(number, on)),
        2 => (member.clone(), key.clone(), any::<bool>()).prop_map(move |(number, key, on)| {
            Event::Refuse(number, key, on && number < refusing)
        }),
        4 => key.clone().prop_map(Event::Add),
        1 => key.prop_map(Event::Remove),
        6 => member.clone().prop_map(Event::Look),
        8 => member.prop_map(Event::Act),
    ]
}

fn world(events: Vec<Event>) -> World {
    let mut world = World::default();
    for event in events {
        world.happens(event);
    }
    world
}

/// Those that see the same neither claim nor give back one piece both, and who claims gives nothing back
/// of the kind.
fn check_moves(world: &World) {
    let division = world.division();
    let mut owned = BTreeSet::new();
    let mut changed = BTreeSet::new();
    for member in world.members.keys() {
        for key in division.of(member) {
            assert!(owned.insert(*key), "{key} is two members'");
        }
        let moves = division.moves(member);
        for key in moves.claim.iter().chain(&moves.give_back) {
            assert!(changed.insert(*key), "{key} is moved twice");
        }
    }
    assert_eq!(owned.len(), division.able());
}

proptest! {
    #[test]
    fn from_any_state_two_rounds_make_shares_fair(
        events in prop::collection::vec(event(0), 0..200),
    ) {
        let mut world = world(events);
        check_moves(&world);
        // What is above the fair shares, rounded up, is all that moves.
        let active = world.active();
        let weight: u32 = active.iter().map(|member| member.share).sum();
        let above = |member: &&Member| {
            let fair = world.work.len() * member.share as usize / weight as usize;
            world.load(&member.name).saturating_sub(fair)
        };
        let gone = world.members.values().filter(|member| member.is_draining || member.share == 0);
        let most: usize = active.iter().map(above).sum::<usize>()
            + gone.map(|member| world.load(&member.name)).sum::<usize>();
        world.given_back = 0;
        world.round(0);
        prop_assert!(world.given_back <= most, "{} of {most}", world.given_back);
        world.round(1);
        world.check_held();
        world.check_fair();
        let given_back = world.given_back;
        for turn in 2..6 {
            let before = world.work.clone();
            world.round(turn);
            prop_assert_eq!(&world.work, &before, "it moves without need");
        }
        prop_assert_eq!(world.given_back, given_back);
    }

    #[test]
    fn where_one_member_refuses_pieces_the_others_make_up_for_it(
        events in prop::collection::vec(event(1), 0..200),
    ) {
        let mut world = world(events);
        for member in world.members.values_mut() {
            member.share = member.share.min(1);
        }
        check_moves(&world);
        world.round(0);
        world.round(1);
        // No piece could go to a member that has two less than its holder.
        for (holder, refused_by) in world.work.values() {
            let Some(holder) = holder else { continue };
            for other in world.active() {
                let is_even = world.load(holder) <= world.load(&other.name) + 1;
                prop_assert!(is_even || refused_by.contains(&other.name), "{:?}", world);
            }
        }
    }

    /// While views are old, at most one member holds a piece (by leases); whoever refuses what, all is
    /// held in the end.
    #[test]
    fn refusals_leave_no_piece_behind_and_come_to_rest(
        events in prop::collection::vec(event(8), 0..200),
    ) {
        let mut world = world(events);
        check_moves(&world);
        world.round(0);
        world.round(1);
        world.check_held();
        let before = world.work.clone();
        world.round(2);
        prop_assert_eq!(&world.work, &before);
    }

    /// A member that comes or goes moves its own part and no more.
    #[test]
    fn one_member_more_or_less_moves_its_part(members in 1..8_usize, pieces in 0..60_u32) {
        let mut events: Vec<Event> = (0..members).map(|number| Event::Join(number, 1)).collect();
        events.extend((0..pieces).map(Event::Add));
        let mut world = world(events);
        world.round(0);
        let part = pieces as usize / (members + 1);
        world.happens(Event::Join(members, 1));
        world.round(1);
        world.round(2);
        prop_assert!(world.given_back <= part, "{} of {part}", world.given_back);
        world.check_fair();
        world.happens(Event::Leave(0));
        world.given_back = 0;
        world.round(3);
        prop_assert_eq!(world.given_back, 0);
        world.check_held();
        world.check_fair();
    }
}
