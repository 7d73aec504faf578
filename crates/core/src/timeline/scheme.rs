//! A source's ID scheme: the order of its IDs, and the time in them.

use driftline_id::Layout;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    answer::Listed,
    upstream_id::{BadIdError, IdOrder, Key, UpstreamId},
};

/// The order of a source's IDs and, if they contain time, their layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdScheme {
    /// The order of its IDs.
    pub order: IdOrder,
    /// The layout of the time in an ID; `None` if IDs contain no time, or if that is unknown. Then
    /// no clamp is used.
    #[serde(with = "layout_name")]
    pub layout: Option<Layout>,
}

impl IdScheme {
    /// Mastodon's: numbers in its layout.
    pub const MASTODON: Self = Self {
        order: IdOrder::Numeric,
        layout: Some(Layout::MASTODON),
    };

    /// A scheme without time in its IDs.
    pub const fn untimed(order: IdOrder) -> Self {
        Self {
            order,
            layout: None,
        }
    }

    /// The sort key of an ID.
    ///
    /// # Errors
    /// [`BadIdError`] if this order cannot hold the ID.
    pub fn key(&self, id: &UpstreamId) -> Result<Key, BadIdError> {
        self.order.key(id)
    }

    /// The ID of a key.
    pub fn id(&self, key: &Key) -> UpstreamId {
        self.order.id(key)
    }

    /// The time in an ID, in Unix ms; `None` if it has none.
    pub fn time_ms(&self, key: &Key) -> Option<i64> {
        let (layout, raw) = self.raw(key)?;
        Some(layout.time_ms(raw))
    }

    /// The smallest ID of a time; `None` if IDs contain no time.
    pub fn floor(&self, unix_ms: i64) -> Option<Key> {
        let layout = self.layout?;
        self.print(&layout, layout.smallest_at(unix_ms))
    }

    /// The ms within which posts are listed in any order, independent of their IDs; 0 if IDs order
    /// all posts.
    pub fn precision_ms(&self) -> i64 {
        if self.names_posts() { 1_000 } else { 0 }
    }

    /// True if a bound must be the ID of a listed post: snac searches its list for an equal ID.
    pub fn names_posts(&self) -> bool {
        self.layout == Some(Layout::SNAC)
    }

    /// The lowest key of a key's time, if IDs in any order share one; otherwise the key.
    pub(super) fn begin_of_time(&self, key: &Key) -> Key {
        self.time_boundary(key, 0)
    }

    /// The end of a key's time, above all its keys, if IDs in any order share one; otherwise the
    /// key. Ranges of such a scheme begin and end there. Otherwise a page with some posts of a time
    /// would separate them from the others.
    pub(super) fn end_of_time(&self, key: &Key) -> Key {
        self.time_boundary(key, 1)
    }

    fn time_boundary(&self, key: &Key, times: i64) -> Key {
        let window_ms = self.precision_ms();
        let boundary = (window_ms > 0).then(|| {
            let begin_ms = self.time_ms(key)?.div_euclid(window_ms) * window_ms;
            self.floor(begin_ms + times * window_ms)
        });
        boundary.flatten().unwrap_or_else(|| key.clone())
    }

    /// The ID just below another; `None` if it cannot be computed, because the text represents no
    /// known number, or nothing is below it.
    pub fn predecessor(&self, key: &Key) -> Option<Key> {
        self.neighbour(key, |number| number.checked_sub(1))
    }

    /// The ID just above another; `None` if it cannot be computed.
    pub fn successor(&self, key: &Key) -> Option<Key> {
        self.neighbour(key, |number| number.checked_add(1))
    }

    fn neighbour(&self, key: &Key, of: impl Fn(u128) -> Option<u128>) -> Option<Key> {
        if self.names_posts() {
            return None;
        }
        if let Some((layout, raw)) = self.raw(key) {
            let number = of(raw).filter(|number| *number <= layout.max())?;
            return self.print(&layout, number);
        }
        let is_number = self.order == IdOrder::Numeric;
        let number: u128 = self.id(key).as_str().parse().ok().filter(|_| is_number)?;
        self.key(&UpstreamId::new(of(number)?.to_string())).ok()
    }

    /// The layout and the number of an ID that contains time.
    pub(super) fn raw(&self, key: &Key) -> Option<(Layout, u128)> {
        let layout = self.layout?;
        let raw = layout.parse(self.id(key).as_str()).ok()?;
        Some((layout, raw))
    }

    /// The key of a number in this scheme's layout.
    pub(super) fn print(&self, layout: &Layout, raw: u128) -> Option<Key> {
        self.order.key(&UpstreamId::new(layout.print(raw))).ok()
    }
}

/// The order of a page's IDs, detected from their form.
///
/// Numbers are sorted as numbers. ULIDs, UUIDs and TIDs, which have a fixed length, are sorted as
/// text. All others are sorted by length and then as text, which is correct for every encoding of
/// growing numbers in an alphabet that ASCII orders.
pub fn detect_order(ids: &[&UpstreamId]) -> Option<IdOrder> {
    if ids.is_empty() {
        return None;
    }
    // One may be an exception.
    let most = |test: fn(&str) -> bool| {
        let fitting = ids.iter().filter(|id| test(id.as_str())).count();
        fitting * 8 >= ids.len() * 7
    };
    // Its hash may consist of digits only.
    Some(if most(is_of_snac) {
        IdOrder::Text
    } else if most(|id| id.bytes().all(|b| b.is_ascii_digit())) {
        IdOrder::Numeric
    } else if most(|id| TEXT_LAYOUTS.iter().any(|layout| layout.parse(id).is_ok())) {
        IdOrder::Text
    } else {
        IdOrder::LengthThenText
    })
}

/// True if an ID is ten digits of a Unix time in seconds, from 2001 to 2128, and an MD5.
fn is_of_snac(id: &str) -> bool {
    let seconds = id.get(..10).and_then(|seconds| seconds.parse::<i64>().ok());
    Layout::SNAC.parse(id).is_ok()
        && seconds.is_some_and(|seconds| (1_000_000_000..5_000_000_000).contains(&seconds))
}

/// The layout whose time agrees with the posts' own creation times, if there is one. At least nine
/// posts in ten must agree within a day, and half of them within an hour. A mixed page has none.
pub fn detect_layout(order: IdOrder, listed: &[Listed]) -> Option<Layout> {
    let candidates: &[Layout] = match order {
        IdOrder::Numeric => NUMERIC_LAYOUTS,
        IdOrder::Text => TEXT_LAYOUTS,
        IdOrder::LengthThenText => return None,
    };
    let dated: Vec<(&str, i64)> = listed
        .iter()
        .filter_map(|item| Some((item.position.as_str(), item.post.created_at_ms?)))
        .collect();
    if dated.is_empty() {
        return None;
    }
    candidates
        .iter()
        .filter_map(|layout| {
            let mut distances: Vec<i64> = dated
                .iter()
                .map(|(id, created_at_ms)| {
                    layout
                        .parse(id)
                        .map(|raw| layout.time_ms(raw).abs_diff(*created_at_ms))
                        .map_or(i64::MAX, |ms| i64::try_from(ms).unwrap_or(i64::MAX))
                })
                .collect();
            distances.sort_unstable();
            let median_ms = distances[distances.len() / 2];
            let ninth_tenth_ms = distances[(distances.len() * 9).div_ceil(10) - 1];
            (median_ms <= HOUR_MS && ninth_tenth_ms <= DAY_MS).then_some((median_ms, *layout))
        })
        .min_by_key(|(median_ms, _)| *median_ms)
        .map(|(_, layout)| layout)
}

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const NUMERIC_LAYOUTS: &[Layout] = &[
    Layout::MASTODON,
    Layout::TWITTER,
    Layout::PULSATE,
    Layout::TAKAHE,
    Layout::DISCORD,
];
const TEXT_LAYOUTS: &[Layout] = &[Layout::ULID, Layout::UUIDV7, Layout::TID, Layout::SNAC];

mod layout_name {
    use super::{Deserialize, Deserializer, Layout, Serialize, Serializer};

    #[allow(clippy::ref_option)]
    pub(super) fn serialize<S: Serializer>(
        layout: &Option<Layout>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        layout.map(|layout| layout.name()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Layout>, D::Error> {
        let name = Option::<String>::deserialize(deserializer)?;
        Ok(name.and_then(|name| Layout::named(&name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_of_digits_alone_is_a_hash() {
        let order = |id: &str| detect_order(&[&UpstreamId::new(id)]);
        let hash = "01234567890123456789012345678901";
        assert_eq!(order(&format!("1700000000{hash}")), Some(IdOrder::Text));
        assert_eq!(order(&format!("9700000000{hash}")), Some(IdOrder::Numeric));
        assert_eq!(order(&format!("170000000{hash}")), Some(IdOrder::Numeric));
        assert_eq!(order("115343379595264000"), Some(IdOrder::Numeric));
    }
}
