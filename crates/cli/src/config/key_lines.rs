//! The lines of a configuration file that its keys are on, and the lines that are not TOML.

use std::collections::BTreeMap;

use toml_edit::{ImDocument, TableLike};

/// The line of each key of a file, by its path.
#[derive(Debug, Clone, Default)]
pub struct KeyLines(BTreeMap<Vec<String>, usize>);

/// A line that is not TOML.
#[derive(Debug, PartialEq, Eq)]
pub struct SyntaxFault {
    /// Its number, from 1 on.
    pub line: usize,
    /// The parser's words, in one line, without what the file has there: it may be a secret.
    pub message: String,
}

impl KeyLines {
    /// Finds the keys of a TOML text. Returns the text without the lines that are not TOML, and these: what
    /// comes after them is read as if they were empty, as far as that makes sense.
    pub fn read(text: &str) -> (Self, String, Vec<SyntaxFault>) {
        let (mut text, mut faults) = (text.to_owned(), Vec::<SyntaxFault>::new());
        loop {
            let parsed = ImDocument::parse(text.as_str()).map(|document| {
                let mut lines = BTreeMap::new();
                find(document.as_table(), &mut Vec::new(), &text, &mut lines);
                lines
            });
            let error = match parsed {
                Ok(lines) => return (Self(lines), text, faults),
                Err(error) => error,
            };
            let line = line_of(&text, error.span().map_or(0, |span| span.start));
            let words = error.message().lines().map(str::trim);
            let message = words.filter(|words| !words.is_empty()).collect::<Vec<_>>();
            let is_further = faults.last().is_none_or(|last| last.line < line);
            if is_further {
                let message = message.join(", ");
                faults.push(SyntaxFault { line, message });
            }
            // A text that is not closed fails at its end again and again.
            if !is_further || faults.len() >= MAX_FAULTS {
                return (Self::default(), String::new(), faults);
            }
            text = without(&text, line);
        }
    }

    /// The line of a key, or of the nearest table around it.
    pub fn get(&self, path: &[&str]) -> Option<usize> {
        let path: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
        let mut around = (1..=path.len()).rev().map(|length| &path[..length]);
        around.find_map(|path| self.0.get(path).copied())
    }
}

fn find(
    table: &dyn TableLike,
    path: &mut Vec<String>,
    text: &str,
    lines: &mut BTreeMap<Vec<String>, usize>,
) {
    for (name, item) in table.iter() {
        path.push(name.to_owned());
        let key = table.get_key_value(name).map(|(key, _)| key);
        if let Some(span) = key.and_then(toml_edit::Key::span) {
            lines.insert(path.clone(), line_of(text, span.start));
        }
        if let Some(inner) = item.as_table_like() {
            find(inner, path, text, lines);
        }
        path.pop();
    }
}

/// The line that a byte is on.
fn line_of(text: &str, at: usize) -> usize {
    let before = text.bytes().take(at.min(text.trim_end().len()));
    before.filter(|byte| *byte == b'\n').count() + 1
}

/// The text with that line empty; with all of its table, if the line should begin one.
fn without(text: &str, line: usize) -> String {
    let is_header = |line: &str| line.trim_start().starts_with('[');
    let mut is_cut = false;
    let lines = text.lines().enumerate().map(|(index, content)| {
        is_cut = match index + 1 == line {
            true => is_header(content),
            false => is_cut && !is_header(content),
        };
        match is_cut || index + 1 == line {
            true => "",
            false => content,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// More are not listed.
const MAX_FAULTS: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_lines() {
        let text =
            "# a\n[server]\nlisten = 1\n\n[refresh.ages]\n\"25h\" = \"2s\"\n[log]\nlevel = \"\"\n";
        let (lines, read, faults) = KeyLines::read(text);
        assert_eq!((read.as_str(), faults), (text, vec![]));
        for (path, line) in [
            (&["server", "listen"][..], Some(3)),
            (&["server"], Some(2)),
            (&["server", "none"], Some(2)),
            (&["refresh", "ages", "25h"], Some(6)),
            (&["log", "level"], Some(8)),
            (&["weather"], None),
        ] {
            assert_eq!(lines.get(path), line, "{path:?}");
        }
    }

    #[test]
    fn every_line_that_is_not_toml_is_found() {
        let text = "[server]\nlisten = \"x\nshare = 2\nshare = 3\n[store\ndata = \"d\"\n[log]\nlevel =\nformat = 5";
        let (lines, read, faults) = KeyLines::read(text);
        let found: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(found, [2, 4, 5, 8], "{faults:?}");
        assert_eq!(lines.get(&["server", "share"]), Some(3));
        assert_eq!(lines.get(&["log", "format"]), Some(9));
        // Keys of a table without its name belong to none.
        assert!(!read.contains("data"), "{read}");
        for fault in &faults {
            assert!(!fault.message.contains('\n'), "{fault:?}");
        }
    }

    #[test]
    fn a_text_that_is_not_closed_ends_the_search() {
        let (_, read, faults) = KeyLines::read("[server]\nname = \"\"\"\nlisten = 1\n");
        assert_eq!(read, "");
        assert!((1..=2).contains(&faults.len()), "{faults:?}");
    }
}
