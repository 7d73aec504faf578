//! Sets of kinds of timelines.

use crate::{quota::Endpoint, rng::Rng};

/// A set of kinds of timelines; by default none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds(u8);

impl Kinds {
    /// No timeline.
    pub const NONE: Self = Self(0);
    /// Every timeline.
    pub const ALL: Self = Self(0b1_1111);

    /// The timelines of these endpoints; others are no timelines.
    pub fn of(endpoints: &[Endpoint]) -> Self {
        let bits = endpoints.iter().map(|&endpoint| bit(endpoint));
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// Whether there is none.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// This kind, if it is in the set.
    pub(crate) fn only(self, endpoint: Endpoint) -> Self {
        Self(self.0 & bit(endpoint))
    }

    /// Home, and half of the time every other kind, else any of them.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        if rng.happens(0.5) {
            return Self::ALL;
        }
        Self(rng.between(0, i64::from(Self::ALL.0)) as u8 | bit(Endpoint::Home))
    }
}

const fn bit(endpoint: Endpoint) -> u8 {
    match endpoint {
        Endpoint::Home => 1,
        Endpoint::Public => 2,
        Endpoint::List => 4,
        Endpoint::User => 8,
        Endpoint::Mentions => 16,
        Endpoint::LookUp | Endpoint::LookUps | Endpoint::Credentials => 0,
    }
}
