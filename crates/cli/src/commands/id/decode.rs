//! `id decode`: IDs taken apart.

use clap::Args;
use driftline_id::{Decoded, Layout, candidates};
use driftline_runtime::now_ms;
use serde_json::{Map, Value, json};

use crate::{error::CliError, output, parse, shown};

/// Shows the parts of an ID.
#[derive(Debug, Args)]
pub struct Decode {
    /// The ID: decimal, 0x and hexadecimal digits, or as its layout writes it.
    id: String,
    /// Its layout; without it, all that it may have are listed, the likely
    /// ones first.
    #[arg(long, value_name = "NAME", value_parser = parse::layout)]
    layout: Option<Layout>,
}

impl Decode {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the text is not an ID.
    pub fn run(&self, json: bool) -> Result<(), CliError> {
        let readings = self.readings(now_ms())?;
        if json {
            let all: Vec<Value> = readings.iter().map(Reading::json).collect();
            return match all.as_slice() {
                [only] if self.layout.is_some() => output::json(only),
                all => output::json(&all),
            };
        }
        let readings: Vec<_> = readings.iter().map(|of| of.lines().join("\n")).collect();
        output::line(&readings.join("\n\n"))
    }

    fn readings(&self, now_ms: i64) -> Result<Vec<Reading>, CliError> {
        if let Some(layout) = self.layout {
            let raw = layout
                .parse_any(&self.id)
                .map_err(|error| CliError::usage(format!("{:?}: {error}", self.id)))?;
            return Ok(vec![Reading::new(layout.decode(raw), now_ms)]);
        }
        let candidates = candidates(&self.id).into_iter();
        let readings = candidates.map(|decoded| Reading::new(decoded, now_ms));
        let mut readings: Vec<Reading> = readings.collect();
        if readings.is_empty() {
            return Err(CliError::usage(format!(
                "{:?} is an ID of no known layout; write it whole, in decimal, as 0x…, or as its system does",
                self.id
            )));
        }
        // Stable: equally likely ones keep the order of the layouts.
        readings.sort_by_key(|reading| reading.likelihood);
        Ok(readings)
    }
}

/// An ID read by one layout.
struct Reading {
    decoded: Decoded,
    likelihood: Likelihood,
}

/// How likely a reading is by its time, the likely first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likelihood {
    /// Between the layout's first use and now.
    InUse,
    /// Before the layout came into use.
    Before,
    /// In the future.
    Future,
}

impl Reading {
    fn new(decoded: Decoded, now_ms: i64) -> Self {
        let likelihood = if decoded.time_ms > now_ms + CLOCK_SLACK_MS {
            Likelihood::Future
        } else if decoded.may_predate_layout() {
            Likelihood::Before
        } else {
            Likelihood::InUse
        };
        Self {
            decoded,
            likelihood,
        }
    }

    fn json(&self) -> Value {
        let decoded = &self.decoded;
        let fields = decoded.fields.iter();
        let fields = fields.map(|field| (field.name().to_owned(), json!(field.value.to_string())));
        json!({
            "layout": decoded.layout.name(),
            "id": decoded.text(),
            "decimal": decoded.decimal(),
            "hex": decoded.hex(),
            "time_ms": decoded.time_ms,
            "time": shown::time(decoded.time_ms),
            "fields": fields.collect::<Map<_, _>>(),
            "plausible": self.likelihood == Likelihood::InUse,
            "remark": self.remark(),
        })
    }

    fn lines(&self) -> Vec<String> {
        let decoded = &self.decoded;
        let time_ms = decoded.time_ms;
        let mut items = vec![
            ("time", format!("{} ({time_ms} ms)", shown::time(time_ms))),
            ("decimal", decoded.decimal()),
            ("hex", decoded.hex()),
        ];
        let fields = decoded.fields.iter();
        items.extend(fields.map(|field| (field.name(), field.value.to_string())));
        items.extend(self.remark().map(|remark| ("note", remark)));
        let head = format!("{} {}", decoded.layout.name(), decoded.text());
        let items = items
            .iter()
            .map(|(title, text)| format!("  {title:<10} {text}"));
        std::iter::once(head).chain(items).collect()
    }

    fn remark(&self) -> Option<String> {
        if self.decoded.may_predate_layout() {
            return Some(format!(
                "may be older than the layout, in use since {}: then it is sequential and carries no time (or it is backdated)",
                shown::time(self.decoded.layout.in_use_since_ms())
            ));
        }
        (self.likelihood == Likelihood::Future)
            .then(|| "its time is in the future: hardly this layout".to_owned())
    }
}

/// Clocks differ.
const CLOCK_SLACK_MS: i64 = 60_000;
