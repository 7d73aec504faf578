//! Parts of a timeline, in the order of its places.

use std::cmp::Reverse;

/// The bounds within which places are read, both exclusive, and the direction.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) above: i64,
    pub(super) below: i64,
    pub(super) is_upward: bool,
}

impl Window {
    /// The part beyond a place, without that place.
    pub(super) fn beyond(self, place: i64) -> Window {
        match self.is_upward {
            true => Window {
                above: place,
                ..self
            },
            false => Window {
                below: place,
                ..self
            },
        }
    }

    /// The part up to a place, including that place.
    pub(super) fn up_to(self, place: i64) -> Window {
        match self.is_upward {
            true => Window {
                below: place.saturating_add(1),
                ..self
            },
            false => Window {
                above: place.saturating_sub(1),
                ..self
            },
        }
    }

    /// The order in which it is read, as SQL.
    pub(super) fn order(self) -> &'static str {
        match self.is_upward {
            true => "asc",
            false => "desc",
        }
    }

    /// Sorts in this order.
    pub(super) fn sort<T>(self, all: &mut [T], id: impl Fn(&T) -> i64) {
        match self.is_upward {
            true => all.sort_by_key(id),
            false => all.sort_by_key(|one| Reverse(id(one))),
        }
    }
}
