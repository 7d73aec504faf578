//! How the world's IDs are made, written and ordered.

use driftline_core::upstream_id::{IdOrder, Key, UpstreamId};

use crate::rng::mix;

/// An ID layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdLayout {
    /// 48 bits of Unix ms, 16 of a sequence that starts anywhere in each ms.
    #[default]
    Mastodon,
    /// 41 bits of ms since 1288834974657, 10 of the worker, 12 of a sequence.
    Twitter,
    /// ms since 1641020400000, 19 random bits, 3 of a type; the time is that
    /// of insertion, never a backdated one.
    Takahe,
    /// 48 bits of Unix ms and 80 random ones, as 26 characters of text.
    Ulid,
    /// A counter in base 36, ordered by length then text; carries no time.
    Sequential,
    /// Ten digits of Unix seconds and 32 hexadecimal ones of a hash, as text.
    Snac,
}

impl IdLayout {
    /// Every layout.
    pub const ALL: [Self; 6] = [
        Self::Mastodon,
        Self::Twitter,
        Self::Takahe,
        Self::Ulid,
        Self::Sequential,
        Self::Snac,
    ];

    /// How a source orders these IDs.
    pub const fn order(self) -> IdOrder {
        match self {
            Self::Mastodon | Self::Twitter | Self::Takahe => IdOrder::Numeric,
            Self::Ulid | Self::Snac => IdOrder::Text,
            Self::Sequential => IdOrder::LengthThenText,
        }
    }

    /// Whether a post that arrives long after it was written gets an ID of
    /// the time when it was written.
    pub(crate) const fn backdates(self) -> bool {
        !matches!(self, Self::Takahe | Self::Sequential)
    }

    /// The place of a value's ID in the order: values order as the IDs do.
    pub(crate) fn key(self, value: u128) -> Key {
        let key = self.order().key(&self.id(value));
        key.unwrap_or_else(|_| Key::lowest())
    }

    /// The ID of a value.
    pub(crate) fn id(self, value: u128) -> UpstreamId {
        if self == Self::Snac {
            return UpstreamId::new(snac(value));
        }
        match self.order() {
            IdOrder::Numeric => UpstreamId::new(value.to_string()),
            IdOrder::Text => UpstreamId::new(encode(value, CROCKFORD, 26)),
            IdOrder::LengthThenText => UpstreamId::new(encode(value, BASE_36, 1)),
        }
    }

    /// The value with a time and a tail; the tail is cut to its width.
    pub(crate) fn compose(self, time_ms: i64, tail: u128) -> u128 {
        match self.time_field() {
            Some((epoch_ms, tail_bits)) => {
                let ticks = time_ms.saturating_sub(epoch_ms) / self.precision_ms();
                let time = u128::try_from(ticks).unwrap_or(0);
                (time << tail_bits) | (tail & ((1 << tail_bits) - 1))
            }
            None => tail,
        }
    }

    /// What the time is counted in, ms.
    pub(crate) const fn precision_ms(self) -> i64 {
        match self {
            Self::Snac => 1_000,
            _ => 1,
        }
    }

    /// How many bits are below the time.
    pub(crate) const fn tail_bits(self) -> u32 {
        match self.time_field() {
            Some((_, bits)) => bits,
            None => 127,
        }
    }

    /// The epoch, Unix ms, and the number of bits below the time.
    const fn time_field(self) -> Option<(i64, u32)> {
        match self {
            Self::Mastodon => Some((0, 16)),
            Self::Twitter => Some((1_288_834_974_657, 22)),
            Self::Takahe => Some((1_641_020_400_000, 22)),
            Self::Ulid => Some((0, 80)),
            Self::Snac => Some((0, 80)),
            Self::Sequential => None,
        }
    }
}

/// The hash begins with the value's tail, so that values order as the texts do.
fn snac(value: u128) -> String {
    let (seconds, tail) = (value >> 80, value & ((1 << 80) - 1));
    let rest = mix(tail as u64, 1) & 0xffff_ffff_ffff;
    format!("{seconds:010}{tail:020x}{rest:012x}")
}

fn encode(mut value: u128, digits: &[u8], width: usize) -> String {
    let base = digits.len() as u128;
    let mut text = Vec::with_capacity(width);
    while value > 0 || text.len() < width {
        text.push(digits[(value % base) as usize]);
        value /= base;
    }
    text.iter().rev().map(|&digit| char::from(digit)).collect()
}

const CROCKFORD: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const BASE_36: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mastodon_ids_are_time_above_sixteen_bits() {
        let value = IdLayout::Mastodon.compose(1_700_000_000_123, 0x1_0007);
        assert_eq!(value, (1_700_000_000_123 << 16) | 7);
        assert_eq!(IdLayout::Mastodon.id(value).as_str(), value.to_string());
    }

    proptest! {
        #[test]
        fn values_order_as_their_ids(a: u128, b: u128) {
            for layout in IdLayout::ALL {
                // Ten digits of seconds end there.
                let fit = |value: u128| match layout {
                    IdLayout::Snac => value % (10_000_000_000 << 80),
                    _ => value,
                };
                let (a, b) = (fit(a), fit(b));
                prop_assert_eq!(a.cmp(&b), layout.key(a).cmp(&layout.key(b)));
            }
        }
    }
}
