//! What the contract suite wrote down of the statements that it sent.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::plan::{Plans, Reach};
use crate::error::TaskError;

/// All statements, by their texts.
#[derive(Debug, Default)]
pub(super) struct Records(pub(super) BTreeMap<String, Record>);

/// What is known of one.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Its tables, each with what it is placed by.
    tables: Vec<(String, String)>,
    plans: Plans,
    /// How many shards a table had.
    shards: u32,
    /// Whether it only reads.
    is_read: bool,
    /// Whether a distributed store has sent it.
    is_distributed: bool,
    /// Why there is no plan.
    refusal: Option<String>,
}

impl Records {
    /// Reads what the test programs have written into that folder: a line of JSON for each statement.
    pub(super) fn read(folder: &Path) -> Result<Records, TaskError> {
        let mut records = Records::default();
        let failed = |error| TaskError::Program(folder.display().to_string(), error);
        for file in fs::read_dir(folder).map_err(failed)? {
            let text = fs::read_to_string(file.map_err(failed)?.path()).map_err(failed)?;
            for line in text.lines() {
                let read = serde_json::from_str(line).ok();
                read.and_then(|line: Value| records.add(&line))
                    .ok_or_else(|| TaskError::message(format!("not a record: {line}")))?;
            }
        }
        match records.0.is_empty() {
            false => Ok(records),
            true => Err(TaskError::message("statements: no test has sent any")),
        }
    }

    fn add(&mut self, line: &Value) -> Option<()> {
        let statement = line["statement"].as_str()?;
        let record = self.0.entry(statement.to_owned()).or_default();
        record.is_read = statement.starts_with("select ");
        record.shards = line["shards"].as_u64()?.try_into().ok()?;
        record.is_distributed |= line["is_distributed"].as_bool()?;
        let pair = |pair: &Value| {
            let text = |index: usize| pair[index].as_str().map(str::to_owned);
            Some((text(0)?, text(1)?))
        };
        let tables: Option<_> = line["tables"].as_array()?.iter().map(pair).collect();
        record.tables = tables?;
        for plan in line["plans"].as_array()? {
            record
                .plans
                .add(plan.as_array()?.iter().filter_map(Value::as_str));
        }
        for refusal in line["refusals"].as_array()? {
            // Of several the same one in each run.
            let refusal = refusal.as_str()?.lines().next()?.to_owned();
            record.refusal = Some(
                record
                    .refusal
                    .take()
                    .map_or(refusal.clone(), |r| r.min(refusal)),
            );
        }
        Some(())
    }
}

impl Record {
    /// Where it goes.
    pub(super) fn reach(&self) -> Reach {
        match self.is_distributed {
            true => self.plans.reach(self.is_read, self.shards, &self.tables),
            false => Reach::Single,
        }
    }

    /// What the list says of it: where it goes, its tables, and what else is to be known.
    pub(super) fn facts(&self) -> String {
        let tables: Vec<&str> = self.tables.iter().map(|(name, _)| name.as_str()).collect();
        let mut facts = vec![self.reach().name().to_owned(), tables.join(", ")];
        facts.extend(self.plans.remarks().into_iter().map(str::to_owned));
        if self.reach() == Reach::Unknown {
            facts.extend(self.refusal.clone());
        }
        facts.retain(|fact| !fact.is_empty());
        facts.join("; ")
    }
}
