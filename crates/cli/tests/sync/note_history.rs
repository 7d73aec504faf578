//! The edits of notes that replicas have acknowledged, and their fate.

use std::collections::BTreeMap;

use serde_json::Value;

/// The edits of notes, in the order in which they were acknowledged. Each line that was written is unique.
#[derive(Debug, Default)]
pub struct NoteHistory(Vec<NoteEdit>);

/// An edit of a note.
#[derive(Debug)]
pub struct NoteEdit {
    pub replica: &'static str,
    /// The object's key.
    pub key: String,
    /// The line that it wrote; `None` if it removed the note.
    pub line: Option<String>,
    /// The note's lines on the replica before it.
    pub before: Vec<String>,
    /// The note's lines on the replica after it.
    pub after: Vec<String>,
}

impl NoteHistory {
    pub fn push(&mut self, edit: NoteEdit) {
        self.0.push(edit);
    }

    /// The number of edits.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Each line that was written is in its note, or was replaced by an edit that had seen it, or is in a conflict.
    pub fn assert_kept(&self, notes: &BTreeMap<String, Vec<String>>, conflicts: &[Conflict]) {
        for edit in &self.0 {
            let Some(line) = &edit.line else { continue };
            let is_there = notes
                .get(&edit.key)
                .is_some_and(|lines| lines.contains(line));
            let is_superseded = self.0.iter().any(|other| other.replaces(&edit.key, line));
            let is_listed = conflicts
                .iter()
                .any(|conflict| conflict.key == edit.key && conflict.mine.contains(line));
            assert!(
                is_there || is_superseded || is_listed,
                "lost: {edit:#?} {conflicts:#?} {self:#?}"
            );
        }
    }

    /// An open conflict is one of an edit of its replica with an edit of another replica that it had not seen. The other one
    /// may have seen it, if the answer to its push was lost.
    pub fn assert_explained(&self, conflict: &Conflict) {
        let (edits, key) = (&self.0, &conflict.key);
        let of_key = || edits.iter().filter(move |edit| edit.key == *key);
        let mut mine = of_key().filter(|edit| {
            edit.replica == conflict.replica
                && match &edit.line {
                    Some(line) => conflict.mine.contains(line),
                    None => conflict.mine.is_empty(),
                }
        });
        let is_explained = mine.any(|mine| {
            let mut others = of_key().filter(|edit| edit.replica != conflict.replica);
            others.any(|other| !mine.has_seen(other))
        });
        assert!(
            conflict.reason == "changed" && is_explained,
            "not one of edits on two replicas: {conflict:#?} {self:#?}"
        );
    }
}

impl NoteEdit {
    /// True if it removes a line of a note.
    fn replaces(&self, key: &str, line: &str) -> bool {
        let has = |lines: &[String]| lines.iter().any(|other| other == line);
        self.key == key && has(&self.before) && !has(&self.after)
    }

    /// True if the replica had the other edit's line.
    fn has_seen(&self, other: &Self) -> bool {
        let line = other.line.as_ref();
        line.is_some_and(|line| self.before.contains(line))
    }
}

/// A conflict of a replica.
#[derive(Debug)]
pub struct Conflict {
    pub replica: &'static str,
    pub key: String,
    /// The lines of the replica's note; none if it was removed.
    pub mine: Vec<String>,
    pub reason: String,
    pub is_resolved: bool,
}

impl Conflict {
    /// Reads a line of `replica conflicts --json`.
    pub fn read(replica: &'static str, row: &Value) -> Self {
        Self {
            replica,
            key: row["key"].as_str().unwrap().to_owned(),
            mine: lines_of(&row["mine"]),
            reason: row["reason"].as_str().unwrap().to_owned(),
            is_resolved: row["is_resolved"].as_bool().unwrap(),
        }
    }
}

/// The lines of a note; none of other values.
pub fn lines_of(value: &Value) -> Vec<String> {
    let text = value["text"].as_str().unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
