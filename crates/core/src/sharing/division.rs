use std::collections::{BTreeMap, BTreeSet};

use super::{Member, Moves, Work};

/// The owner of each piece of work.
///
/// Pieces are counted out one by one, those that the fewest members can do first, each to the able
/// member that is furthest below its weighted fair share; of equals to one that holds such a piece
/// more than it has, and then to the first by name. So each member gets a number of pieces of each
/// kind. It keeps as many of what it holds, and the rest goes to members by name, in runs of
/// neighbours.
///
/// Where every member can do everything, each number is within one of the fair share. Where members
/// refuse different pieces, everything is still done, but the shares may be less even than refusals
/// would allow.
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

impl<K: Ord + Clone> Division<K> {
    /// Divides the work among the members. Does not depend on the order of either.
    pub fn new(mut members: Vec<Member>, mut work: Vec<Work<K>>) -> Self {
        members.sort_by(|one, other| one.name.cmp(&other.name));
        work.sort_by(|one, other| one.key.cmp(&other.key));
        let number = |name: &String| {
            let found = members.binary_search_by(|member| member.name.cmp(name));
            found.ok()
        };
        // Pieces of one kind have the same able members; kinds with few of these come first.
        let mut kinds: BTreeMap<(usize, Vec<usize>), Vec<usize>> = BTreeMap::new();
        let mut pieces = Vec::with_capacity(work.len());
        for (at, piece) in work.into_iter().enumerate() {
            let refused: Vec<usize> = piece.refused_by.iter().filter_map(number).collect();
            let able: Vec<usize> = (0..members.len())
                .filter(|at| members[*at].takes_part() && !refused.contains(at))
                .collect();
            if !able.is_empty() {
                kinds.entry((able.len(), able)).or_default().push(at);
            }
            pieces.push(Piece {
                key: piece.key,
                is_held: piece.holder.is_some(),
                holder: piece.holder.as_ref().and_then(number),
                owner: None,
            });
        }
        let able: usize = kinds.values().map(Vec::len).sum();
        // How far each member is above its fair share, in parts of `unit` to a piece. The shares of members
        // that can do nothing do not count: they would even out what the others' weights divide.
        let working: BTreeSet<usize> = kinds
            .keys()
            .flat_map(|(_, able)| able.iter().copied())
            .collect();
        let unit: i128 = working
            .iter()
            .map(|at| i128::from(members[*at].share))
            .sum();
        let shares = members.iter().map(|member| i128::from(member.share));
        let mut above: Vec<i128> = shares.map(|share| -(able as i128) * share).collect();
        for ((_, able), of_kind) in &kinds {
            let mut held = vec![0; members.len()];
            for holder in of_kind.iter().filter_map(|at| pieces[*at].holder) {
                held[holder] += 1;
            }
            let mut numbers = vec![0; members.len()];
            for _ in of_kind {
                let able = able.iter().copied();
                let rank = |member: &usize| (above[*member], held[*member] <= numbers[*member]);
                if let Some(member) = able.min_by_key(rank) {
                    numbers[member] += 1;
                    above[member] += unit;
                }
            }
            deal(&mut pieces, of_kind, numbers);
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

/// Gives each member its number of these pieces: of those that it holds the first, and of the rest a
/// run of neighbours.
fn deal<K>(pieces: &mut [Piece<K>], of_kind: &[usize], mut numbers: Vec<usize>) {
    let mut rest = Vec::new();
    for at in of_kind {
        let piece = &mut pieces[*at];
        piece.owner = piece.holder.filter(|holder| numbers[*holder] > 0);
        match piece.owner {
            Some(keeper) => numbers[keeper] -= 1,
            None => rest.push(*at),
        }
    }
    let runs = numbers.into_iter().enumerate();
    let takers = runs.flat_map(|(member, number)| std::iter::repeat_n(member, number));
    // The numbers of the kind add up to its pieces, so there is a taker for each.
    for (at, taker) in rest.into_iter().zip(takers) {
        pieces[at].owner = Some(taker);
    }
}
