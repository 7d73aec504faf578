//! Tables of text.

use comfy_table::{CellAlignment, Table, presets::NOTHING};

/// A column and its head.
#[derive(Debug, Clone, Copy)]
pub enum Column {
    /// Its cells begin below the head's beginning, as words do.
    Left(&'static str),
    /// Its cells end below the head's end, as numbers do.
    Right(&'static str),
}

/// The lines of a table, the head first: plain text, two spaces between columns, nothing wrapped or
/// cut.
pub fn lines<const N: usize>(
    columns: [Column; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(columns.map(|(Column::Left(head) | Column::Right(head))| head));
    table.add_rows(rows);
    for (column, of) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, GAP));
        column.set_cell_alignment(match of {
            Column::Left(_) => CellAlignment::Left,
            Column::Right(_) => CellAlignment::Right,
        });
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

const GAP: u16 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_below_their_heads_and_nothing_is_wrapped() {
        let why = "failing: ".to_owned() + &"no ".repeat(100) + "more";
        let row = |name: &str, updates: &str| [name.into(), updates.into(), why.clone()];
        let columns = [
            Column::Left("NAME"),
            Column::Right("UPDATES"),
            Column::Left("STATE"),
        ];
        assert_eq!(
            lines(columns, [row("a", "7"), row("b.example", "12345678")]),
            [
                "NAME        UPDATES  STATE".to_owned(),
                format!("a                 7  {why}"),
                format!("b.example  12345678  {why}"),
            ]
        );
        assert_eq!(lines([Column::Left("ONLY")], []), ["ONLY"]);
    }
}
