//! Tries to log in that wait for their turn, by the name that they try. Pure: chance comes as an argument.
//!
//! An address has one place in a line, however often it tries, and each place is as likely to be drawn. So
//! the owner's turn comes although others try wrong passphrases from many addresses.

use std::{collections::HashMap, net::IpAddr};

/// The lines of all names.
#[derive(Debug)]
pub(crate) struct WaitingLines<T> {
    lines: HashMap<String, Vec<Place<T>>>,
}

#[derive(Debug)]
struct Place<T> {
    address: IpAddr,
    waiting: T,
}

/// What became of a try to join a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// It waits, and is the first of a new line: somebody has to draw from it.
    First,
    /// It waits.
    Behind,
    /// Its address waits already.
    Twice,
}

impl<T> Default for WaitingLines<T> {
    fn default() -> Self {
        Self {
            lines: HashMap::new(),
        }
    }
}

impl<T> WaitingLines<T> {
    /// Takes a place, after those were dropped who `has_left`. In a full line it takes that of another,
    /// chosen by `random`, so that nobody is kept out by those who came first.
    pub(crate) fn join(
        &mut self,
        name: &str,
        (address, waiting): (IpAddr, T),
        random: u64,
        has_left: impl Fn(&T) -> bool,
    ) -> Joined {
        let place = Place { address, waiting };
        let Some(line) = self.lines.get_mut(name) else {
            self.lines.insert(name.to_owned(), vec![place]);
            return Joined::First;
        };
        line.retain(|place| !has_left(&place.waiting));
        if line.iter().any(|place| place.address == address) {
            return Joined::Twice;
        }
        match line.len() < MAX_PLACES {
            true => line.push(place),
            false => {
                let at = chosen(random, line.len());
                if let Some(taken) = line.get_mut(at) {
                    *taken = place;
                }
            }
        }
        Joined::Behind
    }

    /// Drops those who have left; says whether nobody waits any more, and then the line has ended.
    pub(crate) fn has_ended(&mut self, name: &str, has_left: impl Fn(&T) -> bool) -> bool {
        let Some(line) = self.lines.get_mut(name) else {
            return true;
        };
        line.retain(|place| !has_left(&place.waiting));
        let is_empty = line.is_empty();
        if is_empty {
            self.lines.remove(name);
        }
        is_empty
    }

    /// Takes one out of a name's line, chosen by `random` among those who have not left; `None` if there is
    /// none, and then the line has ended.
    pub(crate) fn draw(
        &mut self,
        name: &str,
        random: u64,
        has_left: impl Fn(&T) -> bool,
    ) -> Option<T> {
        if self.has_ended(name, has_left) {
            return None;
        }
        let line = self.lines.get_mut(name)?;
        let at = chosen(random, line.len());
        Some(line.swap_remove(at).waiting)
    }
}

/// One of that many, each as likely: 64 bits are enough for that.
fn chosen(random: u64, of: usize) -> usize {
    let of = u64::try_from(of).unwrap_or(u64::MAX).max(1);
    usize::try_from(random % of).unwrap_or(0)
}

/// Of one name.
const MAX_PLACES: usize = 256;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    const fn stays(_: &u32) -> bool {
        false
    }

    #[test]
    fn an_address_has_one_place_and_each_is_as_likely() {
        let mut drawn = BTreeMap::new();
        for random in 0..5_000 {
            let mut lines = WaitingLines::default();
            for number in 0..100_u32 {
                for _ in 0..=number % 3 {
                    lines.join("ann", (address(number), number), 0, stays);
                }
            }
            let first = lines.draw("ann", random, stays).unwrap();
            *drawn.entry(first).or_insert(0) += 1;
        }
        assert_eq!(drawn.len(), 100);
        assert!(drawn.values().all(|times| *times == 50), "{drawn:?}");
    }

    #[test]
    fn a_line_ends_when_nobody_waits_any_more() {
        let mut lines = WaitingLines::default();
        assert_eq!(lines.join("ann", (address(1), 1), 0, stays), Joined::First);
        assert_eq!(lines.join("ann", (address(1), 2), 0, stays), Joined::Twice);
        assert_eq!(lines.join("ann", (address(2), 3), 0, stays), Joined::Behind);
        assert_eq!(lines.join("ben", (address(1), 4), 0, stays), Joined::First);
        // The one that has left makes room for its address.
        let rejoined = lines.join("ann", (address(1), 5), 0, |number| *number == 1);
        assert_eq!(rejoined, Joined::Behind);
        assert_eq!(lines.draw("ann", 0, stays), Some(3));
        assert_eq!(lines.draw("ann", 0, |number| *number == 5), None);
        assert!(lines.has_ended("ann", stays) && !lines.has_ended("ben", stays));
    }

    proptest! {
        #[test]
        fn a_full_line_lets_newcomers_in(randoms in prop::collection::vec(any::<u64>(), 600)) {
            let mut lines = WaitingLines::default();
            for (number, random) in (0..).zip(&randoms) {
                lines.join("ann", (address(number), number), *random, stays);
                let waiting: Vec<u32> = lines.lines["ann"].iter().map(|place| place.waiting).collect();
                prop_assert!(waiting.contains(&number) && waiting.len() <= MAX_PLACES);
            }
        }
    }
}
