//! The clamp: the position from which to read, so that roughly ordered IDs are not missed.
//!
//! After tesaguri, "Twitter API におけるタイムラインの取得漏れ問題", 2023.

use super::scheme::IdScheme;
use crate::upstream_id::Key;

/// The `since_id` for the next read: `clamp(time2sf(retrieved_at - k) - 1, lower, latest)`. `lower`
/// is `k` below the latest ID, or the latest ID itself while its time part is at most `k`.
///
/// `retrieved_at_ms` is the server's time at the last proven read (see [`super::retrieved_at_ms`]),
/// and `overlap_ms` is `k`. `None` if the scheme's IDs contain no time.
pub fn since_id(
    scheme: &IdScheme,
    latest: &Key,
    retrieved_at_ms: i64,
    overlap_ms: i64,
) -> Option<Key> {
    let (layout, latest_raw) = scheme.raw(latest)?;
    let latest_ms = layout.time_ms(latest_raw);
    let lower = if latest_ms.saturating_sub(layout.epoch_ms()) <= overlap_ms {
        latest_raw
    } else {
        layout.smallest_at(latest_ms - overlap_ms).saturating_sub(1)
    };
    // Saturation at zero is at or below `lower`, like the formula's -1.
    let target = layout
        .smallest_at(retrieved_at_ms.saturating_sub(overlap_ms))
        .saturating_sub(1);
    scheme.print(&layout, target.min(latest_raw).max(lower))
}

#[cfg(test)]
mod tests {
    use driftline_id::Layout;
    use proptest::prelude::*;

    use super::*;
    use crate::upstream_id::{IdOrder, UpstreamId};

    const TWEPOCH: i64 = 1_288_834_974_657;

    /// The formulas as stated by the source, on plain integers.
    fn stated(latest_id: i128, retrieved_at: i128, k: i128, twepoch: i128, shift: u32) -> i128 {
        let time2sf = |unix_time_ms: i128| (unix_time_ms - twepoch).max(0) << shift;
        let timestamp = latest_id >> shift;
        let lower = if timestamp <= k {
            latest_id
        } else {
            ((timestamp - k) << shift) - 1
        };
        lower.max(latest_id.min(time2sf(retrieved_at - k) - 1))
    }

    fn ours(layout: Layout, latest: u64, retrieved_at_ms: i64, k_ms: i64) -> i128 {
        let scheme = IdScheme {
            order: IdOrder::Numeric,
            layout: Some(layout),
        };
        let key = scheme
            .key(&UpstreamId::new(latest.to_string()))
            .expect("a number");
        let since = since_id(&scheme, &key, retrieved_at_ms, k_ms).expect("timed");
        scheme.id(&since).as_str().parse().expect("a number")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn agrees_with_the_stated_formulas(
            is_twitter in any::<bool>(),
            latest in prop_oneof![1u64..(1 << 63), 1u64..(3000 << 22)],
            near_ms in -5_000i64..5_000,
            far in any::<bool>(),
            far_ms in 0i64..(1 << 42),
            k_ms in 0i64..20_000,
        ) {
            let (layout, epoch_ms, shift) = if is_twitter {
                (Layout::TWITTER, TWEPOCH, 22)
            } else {
                (Layout::MASTODON, 0, 16)
            };
            let id_ms = i64::try_from(latest >> shift).expect("at most 48 bits") + epoch_ms;
            let retrieved = if far { far_ms } else { id_ms + near_ms };
            prop_assert_eq!(
                ours(layout, latest, retrieved, k_ms),
                stated(latest.into(), retrieved.into(), k_ms.into(), epoch_ms.into(), shift)
            );
        }
    }

    #[test]
    fn a_time_at_or_below_k_keeps_the_latest_id() {
        for (time, expected) in [(999, 999 << 22), (1000, 1000 << 22), (1001, (1 << 22) - 1)] {
            assert_eq!(ours(Layout::TWITTER, time << 22, TWEPOCH, 1000), expected);
        }
    }
}
