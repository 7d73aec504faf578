//! Tables of text.

use std::fmt::Display;

use comfy_table::{CellAlignment, Table, presets::NOTHING};
use console::{Term, measure_text_width};

/// A cell, with its column's head.
#[derive(Debug, Clone)]
pub struct Cell {
    head: &'static str,
    text: String,
    alignment: CellAlignment,
}

/// A cell that begins below its head's beginning, as words do.
pub fn left(head: &'static str, text: impl Display) -> Cell {
    Cell {
        head,
        text: text.to_string(),
        alignment: CellAlignment::Left,
    }
}

/// A cell that ends below its head's end, as numbers do.
pub fn right(head: &'static str, text: impl Display) -> Cell {
    Cell {
        alignment: CellAlignment::Right,
        ..left(head, text)
    }
}

/// The lines of a table, the head of its first row first: plain text, two spaces between columns,
/// nothing wrapped or cut. No line for no rows. On a terminal that is too narrow for that, each cell has a line.
pub fn lines<const N: usize>(rows: impl IntoIterator<Item = [Cell; N]>) -> Vec<String> {
    let rows: Vec<[Cell; N]> = rows.into_iter().collect();
    let width = Term::stdout().size_checked().map(|(_, columns)| columns);
    fitting(&rows, width.map(usize::from))
}

fn fitting<const N: usize>(rows: &[[Cell; N]], width: Option<usize>) -> Vec<String> {
    let lines = side_by_side(rows);
    let fits = |width| lines.iter().all(|line| measure_text_width(line) <= width);
    match width.is_none_or(fits) {
        true => lines,
        false => one_below_another(rows),
    }
}

/// Each row by itself: its cells one below another, behind their heads.
fn one_below_another<const N: usize>(rows: &[[Cell; N]]) -> Vec<String> {
    let heads = rows.iter().flatten().map(|cell| cell.head.len());
    let widest = heads.max().unwrap_or_default();
    let mut lines = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            lines.push(String::new());
        }
        let cells = row.iter().filter(|cell| !cell.text.is_empty());
        lines.extend(cells.map(|cell| format!("{:widest$}  {}", cell.head, cell.text)));
    }
    lines
}

fn side_by_side<const N: usize>(rows: &[[Cell; N]]) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(NOTHING);
    for row in rows {
        if table.header().is_none() {
            table.set_header(row.each_ref().map(|of| of.shown(of.head)));
        }
        table.add_row(row.each_ref().map(|of| of.shown(&of.text)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP));
    }
    let lines = table.lines();
    lines.map(|line| line.trim_end().to_owned()).collect()
}

impl Cell {
    fn shown(&self, text: &str) -> comfy_table::Cell {
        comfy_table::Cell::new(text).set_alignment(self.alignment)
    }
}

const GAP: u16 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_has_a_line_for_each_cell() {
        let rows = ["ann", "\u{5927}\u{91ce}"].map(|name| [left("NAME", name), right("POSTS", 7)]);
        let table = ["NAME  POSTS", "ann       7", "\u{5927}\u{91ce}      7"];
        assert_eq!(fitting(&rows, None), table);
        assert_eq!(fitting(&rows, Some(11)), table);
        let apart = [
            "NAME   ann",
            "POSTS  7",
            "",
            "NAME   \u{5927}\u{91ce}",
            "POSTS  7",
        ];
        assert_eq!(fitting(&rows, Some(10)), apart);
        assert_eq!(fitting::<2>(&[], Some(10)), [""; 0]);
    }

    #[test]
    fn columns_are_below_their_heads_and_nothing_is_wrapped() {
        let why = "failing: ".to_owned() + &"no ".repeat(100) + "more";
        let row = |name, updates| {
            [
                left("NAME", name),
                right("UPDATES", updates),
                left("STATE", &why),
            ]
        };
        assert_eq!(
            lines([row("a", 7), row("b.example", 12_345_678)]),
            [
                "NAME        UPDATES  STATE".to_owned(),
                format!("a                 7  {why}"),
                format!("b.example  12345678  {why}"),
            ]
        );
    }
}
