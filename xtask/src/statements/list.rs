//! The list's text.

use std::collections::BTreeMap;

use super::plan::Reach;
use super::record::Records;

/// The statements, each with what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct List(BTreeMap<String, String>);

impl List {
    /// Of what was written down.
    pub(super) fn of(records: &Records) -> List {
        let entry =
            |(text, record): (&String, &super::record::Record)| (text.clone(), record.facts());
        List(records.0.iter().map(entry).collect())
    }

    /// Reads a list: after each statement's line an indented one with its facts.
    pub(super) fn parse(text: &str) -> List {
        let mut list = List::default();
        let mut statement = None;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix(INDENT) {
                Some(facts) => {
                    let statement = statement.take().map(str::to_owned);
                    list.0
                        .extend(statement.map(|text| (text, facts.to_owned())));
                }
                None if line.is_empty() => {}
                None => statement = Some(line),
            }
        }
        list
    }

    /// This list, with those of another one that it lacks or has no plan of.
    pub(super) fn with_others_of(mut self, other: List) -> List {
        let is_planned = |facts: &String| {
            let reach = reach_of(facts);
            reach != Reach::Single.name() && reach != Reach::Unknown.name()
        };
        for (statement, facts) in other.0 {
            if !self.0.get(&statement).is_some_and(is_planned) {
                self.0.insert(statement, facts);
            }
        }
        self
    }

    /// The statements that were not written down.
    pub(super) fn without(self, records: &Records) -> Vec<String> {
        let texts = self.0.into_keys();
        texts.filter(|text| !records.0.contains_key(text)).collect()
    }

    /// How it is checked in.
    pub(super) fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (statement, facts) in &self.0 {
            text.push_str(&format!("\n{statement}\n{INDENT}{facts}\n"));
        }
        text
    }

    /// What a later list has besides, or has no more, or says otherwise.
    pub(super) fn changes<'a>(&'a self, later: &'a List) -> Vec<(char, String)> {
        let mut changes = Vec::new();
        for (statement, facts) in &self.0 {
            match later.0.get(statement) {
                None => changes.push(('-', statement.clone())),
                Some(now) if now != facts => {
                    changes.push(('~', format!("{statement}\n    {facts} -> {now}")));
                }
                Some(_) => {}
            }
        }
        let is_new = |(statement, _): &(&String, &String)| !self.0.contains_key(*statement);
        let new = later.0.iter().filter(is_new);
        changes.extend(new.map(|(statement, facts)| ('+', format!("{statement}\n    {facts}"))));
        changes
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many statements go where, as the rows of a table.
    pub(super) fn summary(&self) -> String {
        let rows = Reach::ALL.map(|reach| {
            let name = reach.name();
            let is_so = |facts: &&String| reach_of(facts) == name;
            (name, self.0.values().filter(is_so).count())
        });
        let rows = rows.iter().filter(|(_, count)| *count > 0);
        let rows: Vec<String> = rows
            .map(|(name, count)| format!("| {name} | {count} |"))
            .collect();
        rows.join("\n")
    }
}

/// Where facts say that a statement goes.
fn reach_of(facts: &str) -> &str {
    facts.split_once("; ").map_or(facts, |(reach, _)| reach)
}

const INDENT: &str = "    ";
const HEAD: &str = "\
# Every statement that the store sends to PostgreSQL, and what Citus makes of it: docs/distribution.md
# says what the words mean. Written by `cargo xtask statements --database-url URL`; not to be edited.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(&str, &str)]) -> List {
        let owned = |(text, facts): &(&str, &str)| ((*text).to_owned(), (*facts).to_owned());
        List(entries.iter().map(owned).collect())
    }

    #[test]
    fn a_list_reads_as_it_was_written() {
        let written = list(&[("select 2", "coordinator"), ("select 1", "1 shard; post")]);
        let text = written.text();
        assert!(text.ends_with("\n\nselect 1\n    1 shard; post\n\nselect 2\n    coordinator\n"));
        assert_eq!(List::parse(&text), written);
    }

    #[test]
    fn a_part_of_the_tests_only_adds() {
        let former = list(&[("select 1", "1 shard"), ("select 2", "coordinator")]);
        let now = list(&[("select 2", "all shards"), ("select 3", "coordinator")]);
        let whole = [
            ("select 1", "1 shard"),
            ("select 2", "coordinator"),
            ("select 3", "coordinator"),
        ];
        assert_eq!(former.clone().with_others_of(now.clone()), list(&whole));
        let unplanned = list(&[("select 2", "one PostgreSQL only; post")]);
        assert_eq!(unplanned.with_others_of(now.clone()), now);
        let signs: Vec<char> = former.changes(&now).iter().map(|(sign, _)| *sign).collect();
        assert_eq!(signs, ['-', '~', '+']);
    }

    #[test]
    fn what_nobody_sends_any_more_is_found() {
        let mut sent = Records::default();
        sent.0.insert("select 1".to_owned(), Default::default());
        let listed = list(&[("select 1", "1 shard"), ("select 2", "coordinator")]);
        assert_eq!(listed.without(&sent), ["select 2"]);
    }

    #[test]
    fn statements_are_counted_by_where_they_go() {
        let list = list(&[
            ("a", "1 shard; post"),
            ("b", "1 shard"),
            ("c", "coordinator"),
        ]);
        assert_eq!(list.summary(), "| 1 shard | 2 |\n| coordinator | 1 |");
    }
}
