//! Tables in plain text.

/// A table whose columns are as wide as their widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with a title and the names of its columns.
    pub(crate) fn new<'a>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self {
            title: title.into(),
            rows: vec![columns.into_iter().map(str::to_owned).collect()],
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
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
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
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
pub(crate) fn met(is_met: bool) -> String {
    if is_met { "yes" } else { "NO" }.to_owned()
}
