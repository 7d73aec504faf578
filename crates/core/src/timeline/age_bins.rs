//! Bins of ages and of lateness, half an octave each.
//!
//! The estimate, the evidence and the ages of looks share one grid, so the evidence for an edge
//! applies to all of them.

/// The number of bins. The last one ends at 24 days.
pub(super) const BINS: usize = 53;

/// The upper edge of a bin, in ms: 31 ms for the first, and half an octave more for each next one.
pub(super) fn edge_ms(bin: usize) -> i64 {
    (FIRST_EDGE_MS * 2_f64.powf(bin as f64 / 2.0)).round() as i64
}

/// The bin whose upper edge is nearest to an age, by ratio. A read at that age counts as showing
/// posts up to that edge.
pub(super) fn nearest(age_ms: i64) -> usize {
    if age_ms <= 0 {
        return 0;
    }
    let octaves = (age_ms as f64 / FIRST_EDGE_MS).log2();
    ((octaves * 2.0).round().max(0.0) as usize).min(BINS - 1)
}

/// The middle of a bin by ratio, in ms, which counts as the lateness of its posts.
pub(super) fn middle_ms(bin: usize) -> f64 {
    if bin == 0 {
        return 0.0;
    }
    FIRST_EDGE_MS * 2_f64.powf((bin as f64 - 0.5) / 2.0)
}

const FIRST_EDGE_MS: f64 = 31.25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_is_nearest_to_itself() {
        for bin in 0..BINS {
            assert_eq!(nearest(edge_ms(bin)), bin);
        }
        assert_eq!(edge_ms(10), 1_000);
        assert_eq!(edge_ms(18), 16_000);
        assert_eq!(nearest(-5), 0);
        assert_eq!(nearest(i64::MAX), BINS - 1);
        assert!(edge_ms(BINS - 1) > 24 * 86_400_000 / 2);
    }
}
