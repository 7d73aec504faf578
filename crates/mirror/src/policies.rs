//! The policies by which posts are refreshed, one per instance.

use std::{collections::HashMap, sync::Arc};

use driftline_core::refresh::{AgeTable, LearnedState, Policy, RefreshObservation, RefreshPlan};
use driftline_store::{
    InstanceId, Store, StoreError,
    refresh::{ObservationReport, learn, learned_state, learned_state_root},
};
use parking_lot::RwLock;

/// The policies of this process. Clones are handles to the same ones.
#[derive(Clone, Debug)]
pub struct Policies {
    plan: Arc<RefreshPlan>,
    initial: Arc<Policy>,
    live: Arc<RwLock<HashMap<InstanceId, Arc<Policy>>>>,
}

impl Policies {
    /// Policies that begin with the configured plan.
    pub fn new(plan: RefreshPlan) -> Self {
        let initial = Arc::new(LearnedState::new(0).policy(&plan));
        Self {
            plan: Arc::new(plan),
            initial,
            live: Arc::default(),
        }
    }

    /// The policy of an instance, as this process last loaded it.
    pub fn of(&self, instance: InstanceId) -> Arc<Policy> {
        Arc::clone(self.live.read().get(&instance).unwrap_or(&self.initial))
    }

    /// The age table, which all instances share.
    pub fn ages(&self) -> &AgeTable {
        &self.plan.ages
    }

    /// The configured plan.
    pub fn plan(&self) -> &RefreshPlan {
        &self.plan
    }

    /// Loads the learned state of an instance, which all processes share.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read; the policy stays as it was.
    pub async fn load(&self, store: &Store, instance: InstanceId) -> Result<(), StoreError> {
        let known = store.read(move |tx| learned_state(tx, instance)).await?;
        if let Some(known) = known {
            self.adopt(instance, &known);
        }
        Ok(())
    }

    /// Adds this process's observation to the learned state, and adopts the result.
    pub(crate) async fn share(
        &self,
        store: &Store,
        instance: InstanceId,
        observation: RefreshObservation,
        offered_per_ms: f64,
        (overdue, now_ms): (u64, i64),
    ) -> Result<(), StoreError> {
        let plan = Arc::clone(&self.plan);
        let known = store
            .write(learned_state_root(instance), move |tx| {
                let report = ObservationReport {
                    observation: &observation,
                    offered_per_ms,
                    overdue,
                    now_ms,
                };
                learn(tx, instance, &plan, &report)
            })
            .await?;
        self.adopt(instance, &known);
        Ok(())
    }

    fn adopt(&self, instance: InstanceId, known: &LearnedState) {
        let policy = Arc::new(known.policy(&self.plan));
        self.live.write().insert(instance, policy);
    }
}

impl Default for Policies {
    fn default() -> Self {
        Self::new(RefreshPlan::default())
    }
}
