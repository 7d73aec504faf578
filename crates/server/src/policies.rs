//! The policies by which posts are refreshed, one per instance.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use driftline_core::refresh::{AgeTable, LearnedState, Plan, Policy, RefreshObservation};
use driftline_store::{
    InstanceId, Store, StoreError,
    refresh::{ObservationReport, learn, learned_state, learned_state_root},
};

/// The policies of this process. Clones are handles to the same ones.
#[derive(Clone, Debug)]
pub struct Policies {
    plan: Arc<Plan>,
    at_first: Arc<Policy>,
    live: Arc<RwLock<HashMap<InstanceId, Arc<Policy>>>>,
}

impl Policies {
    /// Policies that begin with what the operator decided.
    pub fn new(plan: Plan) -> Self {
        let at_first = Arc::new(LearnedState::new(0).policy(&plan));
        Self {
            plan: Arc::new(plan),
            at_first,
            live: Arc::default(),
        }
    }

    /// The policy of an instance as far as this process knows it.
    pub fn of(&self, instance: InstanceId) -> Arc<Policy> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(live.get(&instance).unwrap_or(&self.at_first))
    }

    /// The ages, which are those of every instance.
    pub fn ages(&self) -> &AgeTable {
        &self.plan.ages
    }

    /// What the operator decided.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Takes up what an instance's refreshes have taught, in whichever process.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read; the policy stays as it was.
    pub async fn load(&self, store: &Store, instance: InstanceId) -> Result<(), StoreError> {
        let known = store.read(move |tx| learned_state(tx, instance)).await?;
        if let Some(known) = known {
            self.take_up(instance, &known);
        }
        Ok(())
    }

    /// Adds what this process has seen, and takes up what came of it.
    pub(crate) async fn tell(
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
                let told = ObservationReport {
                    observation: &observation,
                    offered_per_ms,
                    overdue,
                    now_ms,
                };
                learn(tx, instance, &plan, &told)
            })
            .await?;
        self.take_up(instance, &known);
        Ok(())
    }

    fn take_up(&self, instance: InstanceId, known: &LearnedState) {
        let policy = Arc::new(known.policy(&self.plan));
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.insert(instance, policy);
    }
}

impl Default for Policies {
    fn default() -> Self {
        Self::new(Plan::default())
    }
}
