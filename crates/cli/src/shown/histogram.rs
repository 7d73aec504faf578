//! A histogram of lateness in a few lines of text.

use crate::duration::show_ms;

/// Joins fine bins (upper edge in ms, share of the posts) to a few rows of bars.
pub fn rows(bins: &[(i64, f64)]) -> Vec<String> {
    let mut below_ms = i64::MIN;
    let joined: Vec<(i64, f64)> = EDGES_MS
        .iter()
        .map(|&edge_ms| {
            let held = |(ms, _): &&(i64, f64)| *ms > below_ms && *ms <= edge_ms;
            let share = bins.iter().filter(held).map(|(_, share)| share).sum();
            below_ms = edge_ms;
            (edge_ms, share)
        })
        .collect();
    let most = joined.iter().map(|&(_, share)| share).fold(0.0, f64::max);
    joined
        .iter()
        .filter(|&&(_, share)| share > 0.0)
        .map(|&(edge_ms, share)| {
            let bar = "#".repeat((share / most * WIDTH).ceil() as usize);
            let edge = match edge_ms {
                i64::MAX => "longer".to_owned(),
                edge_ms => format!("<= {}", show_ms(edge_ms)),
            };
            format!("{edge:>10}  {:>8.4}%  {bar}", share * 100.0)
        })
        .collect()
}

const WIDTH: f64 = 40.0;
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
    fn bins_are_joined_and_the_longest_bar_is_the_most() {
        assert_eq!(
            rows(&[(0, 0.8), (30, 0.01), (40, 0.03), (90_000_000, 0.000_1)]),
            [
                format!("{:>10}  {:>8}%  {}", "<= 0ms", "80.0000", "#".repeat(40)),
                format!("{:>10}  {:>8}%  {}", "<= 50ms", "4.0000", "##"),
                format!("{:>10}  {:>8}%  {}", "longer", "0.0100", "#"),
            ]
        );
        assert!(rows(&[]).is_empty());
    }
}
