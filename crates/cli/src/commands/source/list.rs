//! `source list`.

use serde_json::Value;

use crate::{duration::show_ms, error::CliError, output};

/// Prints a table of the sources.
pub(super) fn print(answer: &Value) -> Result<(), CliError> {
    let sources = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    if sources.is_empty() {
        return output::line("no sources yet; `driftline source add URL` adds one");
    }
    lines(sources)
        .iter()
        .try_for_each(|line| output::line(line))
}

fn lines(sources: &[Value]) -> Vec<String> {
    let name_width = sources.iter().map(|source| text(source, "name").len());
    let width = name_width.max().unwrap_or(0).max(4);
    let head = format!(
        "{:<width$}  {:>7}  {:>8}  {:<8}  TIMELINE",
        "NAME", "UPDATES", "EVERY", "STATE"
    );
    let rows = sources.iter().map(|source| {
        let state = match (&source["paused"], &source["readable"]) {
            (Value::Bool(true), _) => "paused",
            (_, Value::Bool(true)) => "readable",
            _ => "history",
        };
        format!(
            "{:<width$}  {:>7}  {:>8}  {state:<8}  {} of {}",
            text(source, "name"),
            source["update_count"].to_string(),
            show_ms(source["every_ms"].as_i64().unwrap_or(0)),
            text(source, "timeline"),
            text(source, "upstream"),
        )
    });
    std::iter::once(head).chain(rows).collect()
}

fn text<'v>(source: &'v Value, key: &str) -> &'v str {
    source[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_stand_below_their_heads() {
        let source = |name: &str, updates: u64| {
            json!({
                "name": name, "update_count": updates, "every_ms": 3_000, "paused": true,
                "readable": true, "timeline": "public", "upstream": "https://a.example",
            })
        };
        let lines = lines(&[source("a", 7), source("b.example", 12_345)]);
        let at = |line: usize, word: &str| lines[line].find(word).unwrap();
        for line in [1, 2] {
            assert_eq!(at(line, "paused"), at(0, "STATE"), "{lines:#?}");
            assert_eq!(at(line, "public"), at(0, "TIMELINE"), "{lines:#?}");
        }
        assert_eq!(at(1, "7") + 1, at(0, "UPDATES") + 7, "{lines:#?}");
    }
}
