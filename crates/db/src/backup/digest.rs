use ring::digest::{SHA256, digest};

/// The number and digest of a table's rows. Equal digests mean equal rows, in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDigest {
    /// The table.
    pub name: String,
    /// The number of rows.
    pub rows: u64,
    /// The digest of all rows, 64 hexadecimal digits. Digests of the two kinds of database cannot
    /// be compared.
    pub digest: String,
}

/// The digest of a table whose rows are read one by one: the sum of their SHA-256, as four numbers
/// of 64 bits. It does not depend on the order of rows, so nothing must be sorted.
#[derive(Default)]
pub(super) struct RowsDigest {
    rows: u64,
    sums: [u64; 4],
}

impl RowsDigest {
    /// Adds a row, in a form that no other row has.
    pub(super) fn add(&mut self, row: &[u8]) {
        self.rows += 1;
        let hash = digest(&SHA256, row);
        let words = hash.as_ref().chunks_exact(8);
        for (sum, word) in self.sums.iter_mut().zip(words) {
            let word = word.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
            *sum = sum.wrapping_add(word);
        }
    }

    /// Returns the digest of all rows, for the table `name`.
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

    fn digest_of(rows: &[&str]) -> TableDigest {
        let mut digest = RowsDigest::default();
        rows.iter().for_each(|row| digest.add(row.as_bytes()));
        digest.end("t".to_owned())
    }

    #[test]
    fn the_order_of_rows_does_not_matter_and_each_row_does() {
        assert_eq!(digest_of(&["a", "b", "c"]), digest_of(&["c", "a", "b"]));
        assert_ne!(digest_of(&["a", "b"]), digest_of(&["a", "c"]));
        // Equal rows would cancel each other in an exclusive or.
        assert_ne!(digest_of(&["a", "a"]).digest, digest_of(&["b", "b"]).digest);
        assert_ne!(digest_of(&["a"]).digest, digest_of(&["a", "a"]).digest);
    }
}
