//! The ledger's ranges as rows.

use std::collections::BTreeMap;

use driftline_core::{
    timeline::{Gap, GapKind, Provisional},
    upstream_id::Key,
};
use driftline_db::{Column, DbError, Row, Tx};

use crate::error::StoreError;

/// A source's ranges, in order.
pub(crate) fn load(tx: &mut Tx<'_>, source_id: i64) -> Result<Vec<Gap>, DbError> {
    tx.query(
        &format!("select {COLUMNS} from gap where source_id = $1 order by low"),
        &[&source_id],
        from_row,
    )
}

/// Makes the stored ranges, which this transaction has loaded, equal to these, writing only what
/// differs.
///
/// Differences are found against the rows and not against an earlier state in memory: a machine
/// also changes its ledger when it chooses its next step.
pub(crate) fn save(
    tx: &mut Tx<'_>,
    source_id: i64,
    stored: Vec<Gap>,
    gaps: &[Gap],
) -> Result<(), StoreError> {
    let mut stored: BTreeMap<Key, Gap> = stored
        .into_iter()
        .map(|gap| (gap.low.clone(), gap))
        .collect();
    let changed: Vec<Cells<'_>> = gaps
        .iter()
        .filter(|gap| stored.remove(&gap.low).as_ref() != Some(gap))
        .map(Cells::of)
        .collect();
    tx.execute_many_later(
        "delete from gap where source_id = $1 and low in (select low from {rows as r(low)})",
        &[&source_id],
        &[Column::text(stored.keys().map(Key::as_str))],
    )?;
    let cells = || changed.iter();
    tx.execute_many_later(
        &format!(
            "insert into gap (source_id, {COLUMNS})
             select $1, {COLUMNS} from {{rows as r({COLUMNS})}} where true
             on conflict (source_id, low) do update set high = excluded.high, kind = excluded.kind,
                 history = excluded.history, fill_requested = excluded.fill_requested,
                 tries = excluded.tries, read_age_ms = excluded.read_age_ms,
                 from_ms = excluded.from_ms, until_ms = excluded.until_ms"
        ),
        &[&source_id],
        &[
            Column::text(cells().map(|c| c.low)),
            Column::text(cells().map(|c| c.high)),
            Column::text(cells().map(|c| c.kind)),
            Column::bool(cells().map(|c| c.history)),
            Column::bool(cells().map(|c| c.fill_requested)),
            Column::i64(cells().map(|c| c.tries)),
            Column::i64(cells().map(|c| c.read_age_ms)),
            Column::i64(cells().map(|c| c.from_ms)),
            Column::i64(cells().map(|c| c.until_ms)),
        ],
    )?;
    Ok(())
}

/// A range's columns; those that its kind does not have hold zero.
struct Cells<'a> {
    low: &'a str,
    high: &'a str,
    kind: &'static str,
    history: bool,
    fill_requested: bool,
    tries: i64,
    read_age_ms: i64,
    from_ms: i64,
    until_ms: i64,
}

impl<'a> Cells<'a> {
    fn of(gap: &'a Gap) -> Cells<'a> {
        let blank = Cells {
            low: gap.low.as_str(),
            high: gap.high.as_str(),
            kind: UNRECOVERABLE,
            history: false,
            fill_requested: false,
            tries: 0,
            read_age_ms: 0,
            from_ms: 0,
            until_ms: 0,
        };
        match gap.kind {
            GapKind::Open {
                history,
                tries,
                fill_requested,
            } => Cells {
                kind: OPEN,
                history,
                fill_requested,
                tries: i64::from(tries),
                ..blank
            },
            GapKind::Provisional(read) => Cells {
                kind: PROVISIONAL,
                tries: i64::from(read.tries),
                read_age_ms: read.read_age_ms,
                from_ms: read.from_ms,
                until_ms: read.until_ms,
                ..blank
            },
            GapKind::PassedOver { read_age_ms } => Cells {
                kind: PASSED_OVER,
                read_age_ms,
                ..blank
            },
            GapKind::Unrecoverable => blank,
        }
    }
}

fn from_row(row: &Row<'_>) -> Result<Gap, DbError> {
    let tries = || {
        let tries = row.i64("tries")?;
        u32::try_from(tries).map_err(|_| DbError::invalid("a gap's tries"))
    };
    let kind = match row.str("kind")? {
        OPEN => GapKind::Open {
            history: row.bool("history")?,
            tries: tries()?,
            fill_requested: row.bool("fill_requested")?,
        },
        PROVISIONAL => GapKind::Provisional(Provisional {
            read_age_ms: row.i64("read_age_ms")?,
            from_ms: row.i64("from_ms")?,
            until_ms: row.i64("until_ms")?,
            tries: tries()?,
        }),
        PASSED_OVER => GapKind::PassedOver {
            read_age_ms: row.i64("read_age_ms")?,
        },
        UNRECOVERABLE => GapKind::Unrecoverable,
        _ => return Err(DbError::invalid("a gap of an unknown kind")),
    };
    Ok(Gap {
        low: Key::from_stored(row.str("low")?),
        high: Key::from_stored(row.str("high")?),
        kind,
    })
}

/// The columns that [`Cells`] holds and [`from_row`] reads, in order.
const COLUMNS: &str =
    "low, high, kind, history, fill_requested, tries, read_age_ms, from_ms, until_ms";

const OPEN: &str = "open";
const PROVISIONAL: &str = "provisional";
const PASSED_OVER: &str = "passed_over";
const UNRECOVERABLE: &str = "unrecoverable";
