/// Merges two changes of a text by lines. Returns `None` if they change the same line or lines next to each other, or insert
/// different lines at one place.
///
/// A last line without a line feed is a line like the others.
pub fn merge_lines(base: &str, mine: &str, theirs: &str) -> Option<String> {
    let [base, mine, theirs] = [base, mine, theirs].map(|text| format!("{text}\n"));
    // An error is the text with both versions of what overlaps.
    let mut merged = diffy::merge(&base, &mine, &theirs).ok()?;
    if merged.ends_with('\n') {
        merged.pop();
    }
    Some(merged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_of_different_lines_are_kept() {
        let merged = |mine, theirs| merge_lines("a\nb\nc", mine, theirs);
        assert_eq!(merged("A\nb\nc", "a\nb\nC").as_deref(), Some("A\nb\nC"));
        assert_eq!(merged("A\nb\nc", "a\nb\nc\nd"), Some("A\nb\nc\nd".into()));
        assert_eq!(merged("b\nc", "a\nb\nc\n"), Some("b\nc\n".into()));
        assert_eq!(merged("a\nB\nc", "a\nX\nc"), None);
        assert_eq!(merged("A\nb\nc", "a\nB\nc"), None, "next to each other");
        assert_eq!(merged("a\nb\nc\nd", "a\nb\nc\ne"), None);
        assert_eq!(
            merged("a\nb\nc\nd", "a\nb\nc\nd"),
            Some("a\nb\nc\nd".into())
        );
        assert_eq!(merge_lines("", "a", "b"), None);
        assert_eq!(merge_lines("", "", "b"), Some("b".into()));
    }

    /// Texts of few different lines, with and without a line feed at the end.
    fn text() -> impl Strategy<Value = String> {
        let lines = proptest::collection::vec("[abc]?", 0..8);
        (lines, any::<bool>()).prop_map(|(lines, ends)| {
            let text = lines.join("\n");
            if ends { text + "\n" } else { text }
        })
    }

    /// The base with lines inserted, removed and replaced: 0 keeps a line, 1 removes it, 2 inserts before it, 3 replaces it.
    fn changed(base: &[usize], changes: &[u8], name: &str) -> String {
        let mut lines = Vec::new();
        for (number, change) in base.iter().zip(changes) {
            if matches!(change, 2 | 3) {
                lines.push(format!("{name}{number}"));
            }
            if matches!(change, 0 | 2) {
                lines.push(number.to_string());
            }
        }
        lines.join("\n")
    }

    proptest! {
        #[test]
        fn what_one_side_leaves_is_the_other_sides(base in text(), other in text()) {
            prop_assert_eq!(merge_lines(&base, &base, &other), Some(other.clone()));
            prop_assert_eq!(merge_lines(&base, &other, &base), Some(other.clone()));
            prop_assert_eq!(merge_lines(&base, &other, &other), Some(other));
        }

        #[test]
        fn the_order_of_the_sides_does_not_matter(base in text(), one in text(), other in text()) {
            prop_assert_eq!(merge_lines(&base, &one, &other), merge_lines(&base, &other, &one));
        }

        /// A merge has all that each side inserted, and nothing that either removed.
        #[test]
        fn no_change_is_lost(
            mine in proptest::collection::vec(0..4_u8, 12),
            theirs in proptest::collection::vec(0..4_u8, 12),
        ) {
            let base: Vec<usize> = (0..12).collect();
            let text = changed(&base, &[0; 12], "");
            let (mine_text, theirs_text) = (changed(&base, &mine, "m"), changed(&base, &theirs, "t"));
            if let Some(merged) = merge_lines(&text, &mine_text, &theirs_text) {
                let merged: Vec<&str> = merged.lines().collect();
                for (changes, name) in [(&mine, "m"), (&theirs, "t")] {
                    for (number, change) in base.iter().zip(changes) {
                        let inserted = format!("{name}{number}");
                        prop_assert_eq!(merged.contains(&inserted.as_str()), matches!(change, 2 | 3));
                        let line = number.to_string();
                        if matches!(change, 1 | 3) {
                            prop_assert!(!merged.contains(&line.as_str()));
                        }
                    }
                }
            }
        }
    }
}
