//! The learned state of each instance's refreshes.

use driftline_core::refresh::{LearnedState, RefreshObservation, RefreshPlan};
use driftline_db::{Root, Tx};

use crate::{
    error::StoreError,
    id_types::{InstanceId, sql},
    text::{from_json, to_json},
};

/// The root of writes to an instance's learned state.
pub fn root(instance: InstanceId) -> Root {
    Root::row("instance", "id", sql(instance))
}

/// An instance's learned state, if it has one.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn learned_state(
    tx: &mut Tx<'_>,
    instance: InstanceId,
) -> Result<Option<LearnedState>, StoreError> {
    let json = tx.query_opt(
        "select state from learned_state where instance_id = $1",
        &[&sql(instance)],
        |row| row.text("state"),
    )?;
    json.map(|json| from_json("a learned state", &json))
        .transpose()
}

/// A worker's report about an instance.
#[derive(Clone, Debug)]
pub struct ObservationReport<'a> {
    /// Its observations since its last report.
    pub observation: &'a RefreshObservation,
    /// The number of posts per ms that the quota allows; 0 without a quota.
    pub offered_per_ms: f64,
    /// The number of posts that are due and wait.
    pub overdue: u64,
    /// The present time in Unix ms.
    pub now_ms: i64,
}

/// Adds a worker's observations and adjusts the price of quota if that is due. Must be written
/// below [`root`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn learn(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    plan: &RefreshPlan,
    report: &ObservationReport<'_>,
) -> Result<LearnedState, StoreError> {
    let mut known =
        learned_state(tx, instance)?.unwrap_or_else(|| LearnedState::new(report.now_ms));
    known.learn(report.observation);
    known.settle(plan, report.offered_per_ms, report.overdue, report.now_ms);
    let json = to_json("a learned state", &known)?;
    tx.execute(
        "insert into learned_state (instance_id, state) values ($1, $2)
         on conflict (instance_id) do update set state = excluded.state",
        &[&sql(instance), &json],
    )?;
    Ok(known)
}
