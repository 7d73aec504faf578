//! How the world's IDs are made, written and ordered.

use driftline_core::upstream_id::{BadIdError, IdOrder, UpstreamId};

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
}

impl IdLayout {
    /// Every layout.
    pub const ALL: [Self; 5] = [
        Self::Mastodon,
        Self::Twitter,
        Self::Takahe,
        Self::Ulid,
        Self::Sequential,
    ];

    /// How a source orders these IDs.
    pub const fn order(self) -> IdOrder {
        match self {
            Self::Mastodon | Self::Twitter | Self::Takahe => IdOrder::Numeric,
            Self::Ulid => IdOrder::Text,
            Self::Sequential => IdOrder::LengthThenText,
        }
    }

    /// The Unix time in ms that an ID carries, if the layout carries one and
    /// the text is an ID of it.
    pub fn time_ms(self, id: &UpstreamId) -> Option<i64> {
        let (epoch_ms, tail_bits) = self.time_field()?;
        let time = i64::try_from(self.value(id)? >> tail_bits).ok()?;
        time.checked_add(epoch_ms)
    }

    /// Whether a post that arrives long after it was written gets an ID of
    /// the time when it was written.
    pub(crate) const fn backdates(self) -> bool {
        !matches!(self, Self::Takahe | Self::Sequential)
    }

    /// The value of an ID inside the world: values order as the
    /// IDs do.
    pub(crate) fn value(self, id: &UpstreamId) -> Option<u128> {
        let text = id.as_str();
        let value = match self.order() {
            IdOrder::Numeric => text.parse().ok()?,
            IdOrder::Text => decode(text, CROCKFORD)?,
            IdOrder::LengthThenText => decode(text, BASE_36)?,
        };
        (self.id(value) == *id).then_some(value)
    }

    /// The ID of a value.
    pub(crate) fn id(self, value: u128) -> UpstreamId {
        match self.order() {
            IdOrder::Numeric => UpstreamId::new(value.to_string()),
            IdOrder::Text => UpstreamId::new(encode(value, CROCKFORD, 26)),
            IdOrder::LengthThenText => UpstreamId::new(encode(value, BASE_36, 1)),
        }
    }

    /// The least value whose ID does not order before this text, which need
    /// not be an ID of the layout; `None` if every value's does.
    ///
    /// # Errors
    /// If the order has no place for the text; a bound of that text bounds nothing.
    pub(crate) fn first_not_before(self, id: &UpstreamId) -> Result<Option<u128>, BadIdError> {
        if let Some(value) = self.value(id) {
            return Ok(Some(value));
        }
        let order = self.order();
        let bound = order.key(id)?;
        let before = |value: u128| order.key(&self.id(value)).is_ok_and(|key| key < bound);
        if before(u128::MAX) {
            return Ok(None);
        }
        let (mut low, mut high) = (0, u128::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(Some(low))
    }

    /// The value with a time and a tail; the tail is cut to its width.
    pub(crate) fn compose(self, time_ms: i64, tail: u128) -> u128 {
        match self.time_field() {
            Some((epoch_ms, tail_bits)) => {
                let time = u128::try_from(time_ms.saturating_sub(epoch_ms)).unwrap_or(0);
                (time << tail_bits) | (tail & ((1 << tail_bits) - 1))
            }
            None => tail,
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
            Self::Sequential => None,
        }
    }
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

fn decode(text: &str, digits: &[u8]) -> Option<u128> {
    text.bytes().try_fold(0u128, |value, byte| {
        let digit = digits.iter().position(|&digit| digit == byte)?;
        value
            .checked_mul(digits.len() as u128)?
            .checked_add(digit as u128)
    })
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
        let id = IdLayout::Mastodon.id(value);
        assert_eq!(IdLayout::Mastodon.time_ms(&id), Some(1_700_000_000_123));
    }

    #[test]
    fn a_bound_that_is_not_an_id_has_a_position() {
        let ulid = IdLayout::Ulid;
        assert_eq!(ulid.first_not_before(&"0".into()), Ok(Some(0)));
        assert_eq!(ulid.first_not_before(&"zzz".into()), Ok(None));
        assert!(ulid.first_not_before(&"a b".into()).is_err());
        let huge = "9".repeat(60);
        assert_eq!(
            IdLayout::Mastodon.first_not_before(&huge.as_str().into()),
            Ok(None)
        );
    }

    proptest! {
        #[test]
        fn values_order_as_their_ids_and_come_back(a: u128, b: u128) {
            for layout in IdLayout::ALL {
                let (ia, ib) = (layout.id(a), layout.id(b));
                let order = layout.order();
                prop_assert_eq!(a.cmp(&b), order.key(&ia).expect("has a place").cmp(&order.key(&ib).expect("has a place")));
                prop_assert_eq!(layout.value(&ia), Some(a));
            }
        }

        #[test]
        fn the_first_not_before_a_text_is_that(text in "[!-~]{1,30}", probe: u128) {
            let id = UpstreamId::new(text);
            for layout in [IdLayout::Ulid, IdLayout::Sequential] {
                let order = layout.order();
                let bound = order.key(&id).expect("has a place");
                let before = order.key(&layout.id(probe)).expect("has a place") < bound;
                match layout.first_not_before(&id).expect("has a place") {
                    Some(first) => prop_assert_eq!(before, probe < first),
                    None => prop_assert!(before),
                }
            }
        }
    }
}
