//! What refreshes have taught, per instance.

use driftline_core::refresh::{LearnedState, Plan, RefreshObservation};
use driftline_db::{Root, Tx};

use crate::{
    error::StoreError,
    ids::{InstanceId, sql},
};

/// The root of writes to an instance's learned_state.
pub fn root(instance: InstanceId) -> Root {
    Root::row("instance", "id", sql(instance))
}

/// What an instance's refreshes have taught so far.
pub fn learned_state(
    tx: &mut Tx<'_>,
    instance: InstanceId,
) -> Result<Option<LearnedState>, StoreError> {
    let json = tx.query_opt(
        "select state from learned_state where instance_id = $1",
        &[&sql(instance)],
        |row| row.text(0),
    )?;
    json.map(|json| {
        serde_json::from_str(&json)
            .map_err(|error| StoreError::unreadable("what refreshes have taught", &error))
    })
    .transpose()
}

/// What a worker notifies of an instance.
#[derive(Clone, Debug)]
pub struct ObservationReport<'a> {
    /// What it has seen.
    pub observation: &'a RefreshObservation,
    /// How many posts the quota carries in a ms; 0 while there is none.
    pub offered_per_ms: f64,
    /// How many posts are due and wait.
    pub overdue: u64,
    /// The time, Unix ms.
    pub now_ms: i64,
}

/// Adds what a worker has seen and moves the price of quota where its time has come. To be written
/// below [`root`].
pub fn learn(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    plan: &Plan,
    told: &ObservationReport<'_>,
) -> Result<LearnedState, StoreError> {
    let mut known = learned_state(tx, instance)?.unwrap_or_else(|| LearnedState::new(told.now_ms));
    known.learn(told.observation);
    known.settle(plan, told.offered_per_ms, told.overdue, told.now_ms);
    let json = serde_json::to_string(&known)
        .map_err(|error| StoreError::unreadable("what refreshes have taught", &error))?;
    tx.execute(
        "insert into learned_state (instance_id, state) values ($1, $2)
         on conflict (instance_id) do update set state = excluded.state",
        &[&sql(instance), &json],
    )?;
    Ok(known)
}
