//! The ledger's ranges as rows.

use std::collections::BTreeMap;

use driftline_core::{
    timeline::{Gap, GapKind, Provisional},
    upstream_id::Key,
};
use driftline_db::{Column, DbError, PendingRows, Row, Tx};

use crate::{error::StoreError, id_types::SourceKey};

/// A source's ranges, in order.
pub(crate) fn load(tx: &mut Tx<'_>, source: SourceKey) -> Result<Vec<Gap>, DbError> {
    let gaps = load_later(tx, source)?;
    tx.rows(gaps)
}

/// [`load`], requested together with the next query.
pub(crate) fn load_later(
    tx: &mut Tx<'_>,
    source: SourceKey,
) -> Result<PendingRows<'static, Gap>, DbError> {
    tx.query_later(
        &format!(
            "select {COLUMNS} from gap where source_id = $1 and instance_id = $2 order by low"
        ),
        &[&source.id(), &source.instance_id()],
        from_row,
    )
}

/// Makes the stored ranges, which this transaction has loaded, equal to `gaps`. Writes only
/// differences.
///
/// Differences are found by comparison with the rows and not with an earlier state in memory,
/// because a machine also changes its ledger when it chooses its next step.
pub(crate) fn save(
    tx: &mut Tx<'_>,
    source: SourceKey,
    stored: Vec<Gap>,
    gaps: &[Gap],
) -> Result<(), StoreError> {
    let mut stored: BTreeMap<Key, Gap> = stored
        .into_iter()
        .map(|gap| (gap.low.clone(), gap))
        .collect();
    let changed = gaps
        .iter()
        .filter(|gap| stored.remove(&gap.low).as_ref() != Some(gap))
        .map(|gap| Ok((gap, serde_json::to_value(&gap.kind)?)))
        .collect::<Result<Vec<_>, serde_json::Error>>()
        .map_err(|error| StoreError::unreadable("a gap", &error))?;
    tx.execute_many_later(
        "delete from gap where source_id = $1 and instance_id = $2
             and low in (select low from {rows as r(low)})",
        &[&source.id(), &source.instance_id()],
        &[Column::text(stored.keys().map(Key::as_str))],
    )?;
    // Fields that a kind does not have are zero.
    let kinds = || changed.iter().map(|(_, kind)| kind);
    let integers = |name: &'static str| {
        Column::i64(kinds().map(move |kind| kind[name].as_i64().unwrap_or_default()))
    };
    let flags = |name: &'static str| {
        Column::bool(kinds().map(move |kind| kind[name].as_bool().unwrap_or_default()))
    };
    tx.execute_many_later(
        &format!(
            "insert into gap (source_id, instance_id, {COLUMNS})
             select $1, $2, {COLUMNS} from {{rows as r({COLUMNS})}} where true
             on conflict ({{key source_id, low + instance_id}}) do update set high = excluded.high, kind = excluded.kind,
                 history = excluded.history, fill_requested = excluded.fill_requested,
                 tries = excluded.tries, read_age_ms = excluded.read_age_ms,
                 from_ms = excluded.from_ms, until_ms = excluded.until_ms"
        ),
        &[&source.id(), &source.instance_id()],
        &[
            Column::text(changed.iter().map(|(gap, _)| gap.low.as_str())),
            Column::text(changed.iter().map(|(gap, _)| gap.high.as_str())),
            Column::text(kinds().map(|kind| kind["kind"].as_str())),
            flags("history"),
            flags("fill_requested"),
            integers("tries"),
            integers("read_age_ms"),
            integers("from_ms"),
            integers("until_ms"),
        ],
    )?;
    Ok(())
}

fn from_row(row: &Row<'_>) -> Result<Gap, DbError> {
    let tries = || {
        let tries = row.i64("tries")?;
        u32::try_from(tries).map_err(|_| DbError::invalid("a gap's tries"))
    };
    let kind = match row.str("kind")? {
        "open" => GapKind::Open {
            history: row.bool("history")?,
            tries: tries()?,
            fill_requested: row.bool("fill_requested")?,
        },
        "provisional" => GapKind::Provisional(Provisional {
            read_age_ms: row.i64("read_age_ms")?,
            from_ms: row.i64("from_ms")?,
            until_ms: row.i64("until_ms")?,
            tries: tries()?,
        }),
        "passed_over" => GapKind::PassedOver {
            read_age_ms: row.i64("read_age_ms")?,
        },
        "unrecoverable" => GapKind::Unrecoverable,
        _ => return Err(DbError::invalid("a gap of an unknown kind")),
    };
    Ok(Gap {
        low: Key::from_stored(row.str("low")?),
        high: Key::from_stored(row.str("high")?),
        kind,
    })
}

/// The columns that [`save`] writes and [`from_row`] reads, in order: the kinds' fields by name.
const COLUMNS: &str =
    "low, high, kind, history, fill_requested, tries, read_age_ms, from_ms, until_ms";
