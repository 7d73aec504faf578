//! The end of a mirror: its report, and what is not settled.

use std::time::Duration;

use driftline_core::{
    answer::FailureKind,
    timeline::{Gap, GapKind, LastError, Machine},
};
use driftline_mirror::CompletenessReport;
use driftline_runtime::now_ms;
use driftline_server::admin::report_of;
use driftline_store::{Store, StoreError};
use serde::Serialize;
use tokio::time::timeout;

use crate::{duration::duration, error::CliError, output, shown, source_reader::SourceReader};

/// How a mirror ended. It is known without the store, which may be away.
#[derive(Debug)]
pub(super) struct Ending {
    name: String,
    /// What should be settled and is not, a sentence each.
    unsettled: Vec<String>,
    /// The ongoing error, if nothing was ever fetched.
    never_fetched: Option<LastError>,
    /// When it was to end, Unix ms.
    at_ms: Option<i64>,
}

/// The reply as JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum Reply<'a> {
    Report {
        #[serde(flatten)]
        report: &'a CompletenessReport,
        unsettled: &'a [String],
    },
    /// The store did not answer any more.
    NoReport {
        name: &'a str,
        unsettled: &'a [String],
    },
}

impl Ending {
    /// The end of a mirror that was to end at `at_ms` and to settle what was published before
    /// `settle_at_ms`, Unix ms.
    pub(super) fn of(
        reader: &SourceReader,
        at_ms: Option<i64>,
        settle_at_ms: Option<i64>,
        store_error: Option<&StoreError>,
    ) -> Self {
        let (session, machine) = (reader.session(), reader.session().machine());
        let counters = machine.counters();
        let mut unsettled: Vec<String> = store_error
            .map(|error| format!("the store fails: {error}"))
            .into_iter()
            .collect();
        let low_disk = session.low_disk();
        unsettled.extend(low_disk.map(|low| format!("nothing is read: {low}")));
        if let Some(settle_at_ms) = settle_at_ms {
            if !reader.has_polled() {
                unsettled.push(unpolled(machine));
            }
            if machine.is_catching_up() {
                unsettled.push("a backlog is not read to its end".to_owned());
            }
            let settings = &session.source().settings;
            let ranges = machine.unsettled(settings, settle_at_ms, 1);
            unsettled.extend(in_words(machine, ranges));
        }
        Self {
            name: session.source().name.clone(),
            unsettled,
            never_fetched: machine
                .ongoing_error()
                .filter(|_| counters.requests == counters.failures)
                .cloned(),
            at_ms,
        }
    }

    /// Gives the source back and prints the report, or without the store what is not settled alone.
    ///
    /// # Errors
    /// [`CliError`] if something is not settled, or nothing was fetched, or the store failed.
    pub(super) async fn report(
        self,
        store: &Store,
        reader: SourceReader,
        json: bool,
    ) -> Result<(), CliError> {
        let reporting = async {
            reader.close().await?;
            Ok(report_of(store, &self.name).await?)
        };
        let left_ms = self.at_ms.map(|at_ms| at_ms + MAX_REPORT_MS - now_ms());
        let left = left_ms.map_or(Duration::MAX, |left_ms| duration(left_ms).max(MAX_CLOSE));
        let report = match Box::pin(timeout(left, reporting)).await {
            Ok(Err(error)) if self.unsettled.is_empty() => return Err(error),
            Ok(report) => report.ok(),
            Err(_) => None,
        };
        let (name, unsettled) = (&*self.name, &*self.unsettled);
        let reply = match &report {
            Some(report) => Reply::Report { report, unsettled },
            None => Reply::NoReport { name, unsettled },
        };
        output::reply(json, &reply, |_| self.lines(report.as_ref()))?;
        self.outcome(report.is_some())
    }

    fn lines(&self, report: Option<&CompletenessReport>) -> Vec<String> {
        let name = &self.name;
        let mut lines = report.map_or_else(
            || {
                vec![format!(
                    "{name}: no report, since the store does not answer"
                )]
            },
            shown::report,
        );
        let unsettled = self.unsettled.iter();
        lines.extend(unsettled.map(|text| format!("  unsettled    {text}")));
        lines
    }

    fn outcome(self, has_report: bool) -> Result<(), CliError> {
        if let Some(error) = self.never_fetched {
            let text = format!("nothing was ever fetched: {}", error.message);
            let is_refused_here = error.kind == FailureKind::PrivateAddress;
            return Err(match self.at_ms.is_some() && !is_refused_here {
                true => CliError::Unsettled(text),
                false => CliError::failed(text),
            });
        }
        match self.unsettled.len() {
            0 if has_report => Ok(()),
            0 => Err(CliError::Unsettled("the store does not answer".to_owned())),
            left => Err(CliError::Unsettled(format!(
                "{left} unsettled, listed above; mirror again to go on"
            ))),
        }
    }
}

fn unpolled(machine: &Machine) -> String {
    let why = machine.ongoing_error().map_or_else(
        || "the last request is not answered".to_owned(),
        shown::last_error,
    );
    format!("no poll has succeeded since the end: {why}")
}

/// The ranges, open ones one by one.
fn in_words<'a>(machine: &Machine, ranges: impl Iterator<Item = &'a Gap>) -> Vec<String> {
    let Some(scheme) = machine.scheme() else {
        return Vec::new();
    };
    let (mut texts, mut waiting) = (Vec::new(), 0_u64);
    for range in ranges {
        let low = match range.low.is_lowest() {
            true => "the beginning".to_owned(),
            false => scheme.id(&range.low).to_string(),
        };
        let high = scheme.id(&range.high);
        match range.kind {
            GapKind::Open { history: true, .. } => {
                texts.push(format!("history from {low} to {high}, not read yet"));
            }
            GapKind::Open { .. } => texts.push(format!("a gap from {low} to {high}")),
            _ => waiting += 1,
        }
    }
    if waiting > 0 {
        let ranges = shown::count(waiting, "range");
        texts.push(format!("{ranges} to be read once more"));
    }
    texts
}

/// The report of a timed mirror is made within so long after its time.
const MAX_REPORT_MS: i64 = 8_000;
/// For what gives the source and the store back, if the store does not answer.
pub(super) const MAX_CLOSE: Duration = Duration::from_millis(800);
