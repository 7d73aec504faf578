use std::collections::BTreeMap;

use super::{Member, Moves, Work};

/// Who is to do each piece of work.
///
/// Each member's number of pieces is within one of its fair share, the largest remainders rounded
/// up, as far as refusals allow. Pieces stay with their holders, but for what these hold above their
/// part: a member whose number is its share rounded up keeps the last piece.
#[derive(Debug, Clone)]
pub struct Division<K> {
    names: Vec<String>,
    work: Vec<Piece<K>>,
    /// Pieces that somebody can do.
    able: usize,
}

#[derive(Debug, Clone)]
struct Piece<K> {
    key: K,
    /// Whether somebody holds it, member or not.
    is_held: bool,
    /// The member that does.
    holder: Option<usize>,
    owner: Option<usize>,
}

/// The members that can do a piece, in their order.
type Able = Vec<usize>;

impl<K: Ord + Clone> Division<K> {
    /// Divides the work among the members. Does not depend on the order of either.
    pub fn new(mut members: Vec<Member>, mut work: Vec<Work<K>>) -> Self {
        members.sort_by(|one, other| one.name.cmp(&other.name));
        work.sort_by(|one, other| one.key.cmp(&other.key));
        let number = |name: &String| {
            let found = members.binary_search_by(|member| member.name.cmp(name));
            found.ok()
        };
        let mut kinds: BTreeMap<Able, Vec<usize>> = BTreeMap::new();
        let mut pieces = Vec::with_capacity(work.len());
        for (at, piece) in work.into_iter().enumerate() {
            let refused: Vec<usize> = piece.refused_by.iter().filter_map(number).collect();
            let able = (0..members.len())
                .filter(|at| members[*at].takes_part() && !refused.contains(at))
                .collect();
            kinds.entry(able).or_default().push(at);
            pieces.push(Piece {
                key: piece.key,
                is_held: piece.holder.is_some(),
                holder: piece.holder.as_ref().and_then(number),
                owner: None,
            });
        }
        kinds.remove(&Able::new());
        let able = kinds.values().map(Vec::len).sum();
        let kinds: Vec<(Able, Vec<usize>)> = kinds.into_iter().collect();
        let numbers = Numbers::divide(&members, &kinds, &pieces);
        for (kind, (able, of_kind)) in kinds.iter().enumerate() {
            deal(&mut pieces, of_kind, able, |member| {
                numbers.count[member][kind]
            });
        }
        Self {
            names: members.into_iter().map(|member| member.name).collect(),
            work: pieces,
            able,
        }
    }

    /// What the member of that name is to change; everything is given back by who is no member.
    pub fn moves(&self, name: &str) -> Moves<K> {
        let me = self.names.iter().position(|member| member == name);
        let mut moves = Moves::default();
        for piece in &self.work {
            let is_own = me.is_some() && piece.owner == me;
            let is_here = me.is_some() && piece.holder == me;
            match (is_own, is_here, piece.is_held) {
                (true, false, false) => moves.claim.push(piece.key.clone()),
                (true, false, true) => moves.awaited.push(piece.key.clone()),
                (false, true, _) => moves.give_back.push(piece.key.clone()),
                _ => {}
            }
        }
        moves
    }

    /// The pieces that are to be done by the member of that name.
    pub fn of(&self, name: &str) -> impl Iterator<Item = &K> {
        let me = self.names.iter().position(|member| member == name);
        let own = move |piece: &&Piece<K>| me.is_some() && piece.owner == me;
        self.work.iter().filter(own).map(|piece| &piece.key)
    }

    /// How many pieces somebody can do.
    pub fn able(&self) -> usize {
        self.able
    }
}

impl Member {
    fn takes_part(&self) -> bool {
        self.share > 0 && !self.is_draining
    }
}

/// How many pieces of each kind each member has; two pieces are of one kind if the same members can
/// do them.
struct Numbers<'k> {
    kinds: &'k [(Able, Vec<usize>)],
    /// By member and kind.
    count: Vec<Vec<usize>>,
    /// What each holds of it.
    held: Vec<Vec<usize>>,
    load: Vec<i128>,
    fair: FairShares,
}

impl<'k> Numbers<'k> {
    fn divide<K>(
        members: &[Member],
        kinds: &'k [(Able, Vec<usize>)],
        pieces: &[Piece<K>],
    ) -> Numbers<'k> {
        let none = vec![vec![0; kinds.len()]; members.len()];
        let mut numbers = Numbers {
            kinds,
            count: none.clone(),
            held: none,
            load: vec![0; members.len()],
            fair: FairShares::new(members, kinds),
        };
        let mut free = Vec::new();
        for (kind, (able, of_kind)) in kinds.iter().enumerate() {
            for at in of_kind {
                match pieces[*at].holder.filter(|holder| able.contains(holder)) {
                    Some(holder) => {
                        numbers.held[holder][kind] += 1;
                        numbers.add(holder, kind);
                    }
                    None => free.push(kind),
                }
            }
        }
        for kind in free {
            let able = kinds[kind].0.iter().copied();
            if let Some(least) = able.min_by_key(|member| (numbers.above(*member), *member)) {
                numbers.add(least, kind);
            }
        }
        // First what is free is divided as evenly as can be; held pieces move only if that is not even enough. So
        // members that did their part of one division see next that nothing is to be given back.
        for moved in [Movable::Free, Movable::All] {
            while numbers.improve(moved) {}
        }
        numbers
    }

    fn add(&mut self, member: usize, kind: usize) {
        self.count[member][kind] += 1;
        self.load[member] += 1;
    }

    /// How far a member is above its fair share, in parts of [`FairShares::unit`] to a piece.
    fn above(&self, member: usize) -> i128 {
        self.load[member] * self.fair.unit - self.fair.parts[member]
    }

    /// Moves a piece from a member to one that is more than a piece further below its fair share,
    /// through others where refusals are in the way. `false` if there is none. Each move lowers the
    /// sum of squares of what members are above their shares, so that moves come to an end.
    fn improve(&mut self, moved: Movable) -> bool {
        let mut givers: Vec<usize> = (0..self.load.len()).collect();
        givers.sort_by_key(|member| (-self.above(*member), *member));
        for giver in givers {
            let Some(path) = self.path(giver, moved) else {
                continue;
            };
            for step in path {
                self.count[step.from][step.kind] -= 1;
                self.count[step.to][step.kind] += 1;
                self.load[step.from] -= 1;
                self.load[step.to] += 1;
            }
            return true;
        }
        false
    }

    /// The shortest way for a piece from this member to the one that is furthest below its share.
    fn path(&self, giver: usize, moved: Movable) -> Option<Vec<Step>> {
        let mut came_by: Vec<Option<Step>> = vec![None; self.load.len()];
        let mut reached = vec![giver];
        let mut at = 0;
        while let Some(from) = reached.get(at).copied() {
            at += 1;
            for (to, step) in came_by.iter_mut().enumerate() {
                if to == giver || step.is_some() {
                    continue;
                }
                if let Some(kind) = self.movable(from, to, moved) {
                    *step = Some(Step { from, to, kind });
                    reached.push(to);
                }
            }
        }
        let taker = reached
            .into_iter()
            .skip(1)
            .min_by_key(|member| (self.above(*member), *member))?;
        if self.above(giver) - self.above(taker) <= self.fair.unit {
            return None;
        }
        let mut path = Vec::new();
        let mut to = taker;
        while let Some(step) = came_by[to] {
            path.push(step);
            to = step.from;
        }
        Some(path)
    }

    /// A kind of which a piece can move; what the giver does not hold first.
    fn movable(&self, from: usize, to: usize, moved: Movable) -> Option<usize> {
        let mut of_held = None;
        for (kind, (able, _)) in self.kinds.iter().enumerate() {
            if self.count[from][kind] == 0 || !able.contains(&to) {
                continue;
            }
            if self.count[from][kind] > self.held[from][kind] {
                return Some(kind);
            }
            of_held.get_or_insert(kind);
        }
        match moved {
            Movable::Free => None,
            Movable::All => of_held,
        }
    }
}

/// Which pieces may move.
#[derive(Debug, Clone, Copy)]
enum Movable {
    /// Those that no member holds who can do them.
    Free,
    /// Also those that are held.
    All,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    from: usize,
    to: usize,
    kind: usize,
}

/// What each member would do if pieces could be cut, as exact fractions.
struct FairShares {
    /// By member, in parts of `unit` to a piece.
    parts: Vec<i128>,
    unit: i128,
}

impl FairShares {
    /// In proportion to the weights. Among unequal ones, who can do less than its proportion has what
    /// it can do, and the others share the rest in proportion. Equal ones need no such correction: what
    /// [`Numbers::improve`] does is then the most even division that refusals allow.
    fn new(members: &[Member], kinds: &[(Able, Vec<usize>)]) -> Self {
        let can_do = |member: usize| -> i128 {
            let of_it = kinds.iter().filter(|(able, _)| able.contains(&member));
            of_it.map(|(_, of_kind)| of_kind.len() as i128).sum()
        };
        let weight = |member: &usize| i128::from(members[*member].share);
        let most: Vec<i128> = (0..members.len()).map(can_do).collect();
        let mut rest: i128 = kinds.iter().map(|(_, of_kind)| of_kind.len() as i128).sum();
        let mut sharing: Vec<usize> = (0..members.len())
            .filter(|member| members[*member].takes_part())
            .collect();
        let mut limited = Vec::new();
        let are_equal = sharing
            .windows(2)
            .all(|pair| weight(&pair[0]) == weight(&pair[1]));
        loop {
            let unit: i128 = sharing.iter().map(weight).sum();
            let is_limited =
                |member: &usize| !are_equal && most[*member] * unit < rest * weight(member);
            let (less, more): (Vec<usize>, Vec<usize>) =
                sharing.iter().partition(|member| is_limited(member));
            if less.is_empty() {
                let mut parts = vec![0; members.len()];
                let unit = unit.max(1);
                for member in sharing {
                    parts[member] = rest * weight(&member);
                }
                for member in limited {
                    parts[member] = most[member] * unit;
                }
                return Self { parts, unit };
            }
            // Kinds may overlap: then less is left than this says, and never less than nothing.
            rest = less
                .iter()
                .fold(rest, |rest, member| rest - most[*member])
                .max(0);
            limited.extend(less);
            sharing = more;
        }
    }
}

/// Gives each member its number of these pieces: of those that it holds the first, and of the rest a
/// run of neighbours.
fn deal<K>(
    pieces: &mut [Piece<K>],
    of_kind: &[usize],
    able: &[usize],
    number: impl Fn(usize) -> usize,
) {
    let mut kept: BTreeMap<usize, usize> = BTreeMap::new();
    let mut rest = Vec::new();
    for at in of_kind {
        let piece = &mut pieces[*at];
        let keeper = piece.holder.filter(|holder| {
            let kept = kept.entry(*holder).or_default();
            *kept += 1;
            *kept <= number(*holder)
        });
        piece.owner = keeper;
        if keeper.is_none() {
            rest.push(*at);
        }
    }
    let takers = able.iter().flat_map(|&member| {
        let has = kept.get(&member).copied().unwrap_or(0);
        std::iter::repeat_n(member, number(member).saturating_sub(has))
    });
    // The numbers of the kind add up to its pieces, so there is a taker for each.
    for (at, taker) in rest.into_iter().zip(takers) {
        pieces[at].owner = Some(taker);
    }
}
