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

/// What a source is doing comes last: why it fails may take some words.
fn lines(sources: &[Value]) -> Vec<String> {
    let timeline = |source: &Value| {
        format!(
            "{} of {}",
            text(source, "timeline"),
            text(source, "upstream")
        )
    };
    let width = |of: &dyn Fn(&Value) -> usize, least: usize| {
        sources.iter().map(of).max().unwrap_or(0).max(least)
    };
    let names = width(&|source| text(source, "name").len(), 4);
    let timelines = width(&|source| timeline(source).len(), 8);
    let head = format!(
        "{:<names$}  {:>7}  {:>8}  {:<timelines$}  STATE",
        "NAME", "UPDATES", "EVERY", "TIMELINE"
    );
    let rows = sources.iter().map(|source| {
        format!(
            "{:<names$}  {:>7}  {:>8}  {:<timelines$}  {}",
            text(source, "name"),
            source["update_count"].to_string(),
            show_ms(source["every_ms"].as_i64().unwrap_or(0)),
            timeline(source),
            text(source, "state_text"),
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
    fn columns_are_below_their_heads() {
        let source = |name: &str, updates: u64| {
            json!({
                "name": name, "update_count": updates, "every_ms": 3_000,
                "state_text": "failing: no", "timeline": "public", "upstream": "https://a.example",
            })
        };
        let lines = lines(&[source("a", 7), source("b.example", 12_345)]);
        let at = |line: usize, word: &str| lines[line].find(word).unwrap();
        for line in [1, 2] {
            assert_eq!(at(line, "failing: no"), at(0, "STATE"), "{lines:#?}");
            assert_eq!(at(line, "public"), at(0, "TIMELINE"), "{lines:#?}");
        }
        assert_eq!(at(1, "7") + 1, at(0, "UPDATES") + 7, "{lines:#?}");
    }
}
