use ring::digest::{SHA256, digest};

/// What a table holds: equal digests mean equal rows, in whatever order they lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDigest {
    /// The table.
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
    /// Of all rows, 64 hexadecimal digits. Digests of the two databases cannot be compared.
    pub digest: String,
}

/// The digest of a table whose rows are read one by one: the sum of their SHA-256, as four numbers of
/// 64 bits. It does not depend on their order, so that nothing has to be sorted.
#[derive(Default)]
pub(super) struct RowsDigest {
    rows: u64,
    sums: [u64; 4],
}

impl RowsDigest {
    /// Takes a row in, in a form that no other row has.
    pub(super) fn add(&mut self, row: &[u8]) {
        self.rows += 1;
        let hash = digest(&SHA256, row);
        let words = hash.as_ref().chunks_exact(8);
        for (sum, word) in self.sums.iter_mut().zip(words) {
            let word = word.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
            *sum = sum.wrapping_add(word);
        }
    }

    /// Of all rows of that table.
    pub(super) fn end(self, name: String) -> TableDigest {
        let digest = self.sums.map(|sum| format!("{sum:016x}")).concat();
        let rows = self.rows;
        TableDigest { name, rows, digest }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[&str]) -> TableDigest {
        let mut digest = RowsDigest::default();
        rows.iter().for_each(|row| digest.add(row.as_bytes()));
        digest.end("t".to_owned())
    }

    #[test]
    fn the_order_of_rows_does_not_matter_and_each_row_does() {
        assert_eq!(of(&["a", "b", "c"]), of(&["c", "a", "b"]));
        assert_ne!(of(&["a", "b"]), of(&["a", "c"]));
        // What cancels itself out in an exclusive or.
        assert_ne!(of(&["a", "a"]).digest, of(&["b", "b"]).digest);
        assert_ne!(of(&["a"]).digest, of(&["a", "a"]).digest);
    }
}
