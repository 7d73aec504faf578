//! Has the partitions of the months to come made, and shows how far they reach.

use std::time::Duration;

use driftline_runtime::{
    FaultLogs, Weight,
    metrics::{PARTITION_DEFAULT_ROWS, PARTITION_REACH},
    now_ms,
};
use driftline_store::{
    Store,
    partitions::{self, Reach},
};

/// Does so until it is dropped. Where nothing is partitioned, there is nothing to do.
pub(super) async fn keep(store: Store) {
    let logs = FaultLogs::default();
    loop {
        let is_made = make(&store, &logs).await;
        match partitions::reaches(&store).await {
            Ok(reaches) if reaches.is_empty() => std::future::pending().await,
            Ok(reaches) => reaches.iter().for_each(|reach| show(reach, &logs)),
            // Others tell of a store that is out.
            Err(error) => tracing::debug!(%error, "partitions were not looked at"),
        }
        let pause = if is_made { EVERY } else { RETRY_EVERY };
        tokio::time::sleep(pause).await;
    }
}

/// What is wrong with the partitions of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Fault {
    NotMade,
    EndSoon(&'static str),
    HasDefaultRows(&'static str),
}

async fn make(store: &Store, logs: &FaultLogs<Fault>) -> bool {
    let Err(error) = partitions::make_ahead(store).await else {
        logs.succeeded(&Fault::NotMade, now_ms());
        return true;
    };
    // A table that is in use now will be free.
    if logs.failed(Fault::NotMade, Weight::Passing, now_ms()) {
        tracing::warn!(%error, "the partitions of months to come cannot be made; it is tried again every minute");
    }
    false
}

fn show(reach: &Reach, logs: &FaultLogs<Fault>) {
    let Reach {
        table,
        now_ms: at_ms,
        until_ms,
        default_rows,
    } = *reach;
    PARTITION_REACH.with([table]).set(until_ms as f64 / 1_000.0);
    PARTITION_DEFAULT_ROWS
        .with([table])
        .set(default_rows as f64);
    let days_ahead = until_ms.saturating_sub(at_ms) / DAY_MS;
    let warn = |fault: Fault, is_so: bool, message: &str| {
        if !is_so {
            logs.succeeded(&fault, now_ms());
        } else if logs.failed(fault, Weight::Lasting, now_ms()) {
            tracing::warn!(table, days_ahead, default_rows, "{message}");
        }
    };
    warn(
        Fault::EndSoon(table),
        days_ahead < MIN_DAYS_AHEAD,
        "the table has partitions for less than a month to come: rows beyond go to its default partition",
    );
    warn(
        Fault::HasDefaultRows(table),
        default_rows > 0,
        "the table's default partition has rows: a clock was wrong, or months had no partition",
    );
}

const EVERY: Duration = Duration::from_secs(3_600);
const RETRY_EVERY: Duration = Duration::from_secs(60);
const DAY_MS: i64 = 86_400_000;
/// Operators are alerted at the same number.
const MIN_DAYS_AHEAD: i64 = 28;
