//! Tables in plain text.

use std::fmt::Display;

use crate::rounds::{Pairs, Times};

/// A table whose columns are as wide as their widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

/// The figure that Driftline must reach.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// None.
    Any,
    /// A median below this.
    Below(f64),
    /// A median of at least this.
    AtLeast(f64),
    /// At least so many times the peer's.
    OfPeer(f64),
}

impl Table {
    /// An empty table with a title and the names of its columns, between bars.
    pub(crate) fn new(title: impl Display, columns: &str) -> Self {
        let mut table = Self {
            title: title.to_string(),
            rows: Vec::new(),
        };
        table.row(columns);
        table
    }

    /// Adds a row, its cells between bars.
    pub(crate) fn row(&mut self, cells: impl Display) {
        let cells = cells.to_string();
        let cells = cells.split('|').map(|cell| cell.trim().to_owned());
        self.rows.push(cells.collect());
    }

    /// Adds a row that begins with these cells: Driftline's figure, the peer's, the ratio, the target, and
    /// whether it is met.
    pub(crate) fn compare<T>(
        &mut self,
        cells: impl Display,
        pairs: &Pairs<T>,
        figure: impl Fn(&T) -> f64,
        digits: usize,
        target: Target,
    ) {
        let (ours, peer) = (pairs.of(0, &figure, digits), pairs.of(1, &figure, digits));
        let ratio = pairs.ratio(0, 1, &figure);
        let (target, is_met) = match target {
            Target::Any => (String::new(), None),
            Target::Below(most) => (format!("< {most}"), Some(ours.median < most)),
            Target::AtLeast(least) => (format!(">= {least}"), Some(ours.median >= least)),
            Target::OfPeer(least) => (format!("ratio >= {least}"), Some(ratio.median >= least)),
        };
        let is_met = is_met.map_or("", met);
        self.row(format!(
            "{cells} | {ours} | {peer} | {ratio} | {target} | {is_met}"
        ));
    }

    /// Adds a row that begins with these cells, for the [columns of times](TIMES); `max_ms`, if it is finite, is
    /// the target of Driftline's p99.
    pub(crate) fn times(&mut self, cells: impl Display, pairs: &Pairs<Times>, max_ms: f64) {
        let of = |way, figure: fn(&Times) -> f64| pairs.of(way, figure, 2);
        let [p50, bare_p50] = [0, 1].map(|way| of(way, |times| times.p50));
        let [p99, bare_p99] = [0, 1].map(|way| of(way, |times| times.p99));
        let ratio = pairs.ratio(0, 1, |times| times.p50);
        let target = match max_ms.is_finite() {
            true => format!("p99 < {max_ms} ms | {}", met(p99.median < max_ms)),
            false => "|".to_owned(),
        };
        self.row(format!(
            "{cells} | {p50} | {p99} | {bare_p50} | {bare_p99} | {ratio} | {target}"
        ));
    }

    /// Prints it to standard output.
    pub(crate) fn print(&self) {
        let width_of = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let columns = self.rows.first().map_or(0, Vec::len);
        let widths: Vec<usize> = (0..columns).map(width_of).collect();
        println!("\n{}", self.title);
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths);
            let cells: Vec<String> = cells
                .map(|(cell, &width)| format!("{cell:<width$}"))
                .collect();
            println!("| {} |", cells.join(" | "));
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
                println!("|-{}-|", rules.join("-|-"));
            }
        }
    }
}

/// `yes` or `NO`, for a target.
pub(crate) const fn met(is_met: bool) -> &'static str {
    if is_met { "yes" } else { "NO" }
}

/// The columns of [`Table::times`].
pub(crate) const TIMES: &str =
    "Driftline p50, ms | p99 | bare p50 | p99 | ratio of p50 | target | met";
