//! Tables of text.

use std::fmt::Display;

use comfy_table::{CellAlignment, Table, presets::NOTHING};

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
/// nothing wrapped or cut. No line for no rows.
pub fn lines<const N: usize>(rows: impl IntoIterator<Item = [Cell; N]>) -> Vec<String> {
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
