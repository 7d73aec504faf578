//! A histogram of lateness in a few lines of text.

use crate::duration::show_ms;

/// Joins fine buckets (upper edge in ms, posts) to a few rows of bars.
pub fn rows(buckets: &[(i64, u32)]) -> Vec<String> {
    let mut below_ms = i64::MIN;
    let joined: Vec<(i64, u64)> = EDGES_MS
        .iter()
        .map(|&edge_ms| {
            let posts = buckets
                .iter()
                .filter(|&&(ms, _)| ms > below_ms && ms <= edge_ms)
                .map(|&(_, posts)| u64::from(posts))
                .sum();
            below_ms = edge_ms;
            (edge_ms, posts)
        })
        .collect();
    let most = joined.iter().map(|&(_, posts)| posts).max().unwrap_or(0);
    joined
        .iter()
        .filter(|&&(_, posts)| posts > 0)
        .map(|&(edge_ms, posts)| {
            let bar = "#".repeat((posts * WIDTH).div_ceil(most.max(1)) as usize);
            let edge = match edge_ms {
                i64::MAX => "longer".to_owned(),
                edge_ms => format!("<= {}", show_ms(edge_ms)),
            };
            format!("{edge:>10}  {posts:>8}  {bar}")
        })
        .collect()
}

const WIDTH: u64 = 40;
const EDGES_MS: [i64; 14] = [
    0,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    15_000,
    60_000,
    600_000,
    3_600_000,
    86_400_000,
    i64::MAX,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_joined_and_the_longest_bar_is_the_most() {
        assert_eq!(
            rows(&[(0, 80), (30, 1), (40, 3), (90_000_000, 1)]),
            [
                format!("{:>10}  {:>8}  {}", "<= 0ms", 80, "#".repeat(40)),
                format!("{:>10}  {:>8}  {}", "<= 50ms", 4, "##"),
                format!("{:>10}  {:>8}  {}", "longer", 1, "#"),
            ]
        );
        assert!(rows(&[]).is_empty());
    }
}
