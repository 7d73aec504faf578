//! What refreshes have taught, per instance.

use driftline_core::refresh::{Experience, Lesson, Plan};
use driftline_db::{Root, Tx};

use crate::{
    error::StoreError,
    ids::{InstanceId, sql},
};

/// The root of writes to an instance's experience.
pub fn root(instance: InstanceId) -> Root {
    Root::row("instance", "id", sql(instance))
}

/// What an instance's refreshes have taught so far.
pub fn experience(tx: &mut Tx<'_>, instance: InstanceId) -> Result<Option<Experience>, StoreError> {
    let json = tx.query_opt(
        "select state from experience where instance_id = $1",
        &[&sql(instance)],
        |row| row.text(0),
    )?;
    json.map(|json| {
        serde_json::from_str(&json)
            .map_err(|error| StoreError::unreadable("what refreshes have taught", &error))
    })
    .transpose()
}

/// What a worker tells of an instance.
#[derive(Clone, Debug)]
pub struct Told<'a> {
    /// What it has seen.
    pub lesson: &'a Lesson,
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
    told: &Told<'_>,
) -> Result<Experience, StoreError> {
    let mut known = experience(tx, instance)?.unwrap_or_else(|| Experience::new(told.now_ms));
    known.learn(told.lesson);
    known.settle(plan, told.offered_per_ms, told.overdue, told.now_ms);
    let json = serde_json::to_string(&known)
        .map_err(|error| StoreError::unreadable("what refreshes have taught", &error))?;
    tx.execute(
        "insert into experience (instance_id, state) values ($1, $2)
         on conflict (instance_id) do update set state = excluded.state",
        &[&sql(instance), &json],
    )?;
    Ok(known)
}
