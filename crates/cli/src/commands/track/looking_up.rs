//! Waiting until what was asked for is looked up: by this process, where no server runs.

use std::time::{Duration, Instant};

use driftline_core::tracking::TrackedPosts;
use driftline_mirror::refresh::{RefreshOptions, Refreshers};
use driftline_runtime::now_ms;
use driftline_server::admin::{self, CountTracked, LookUpPlan, PlanLookUps};
use tokio::sync::watch;

use super::plan;
use crate::{
    config::Config,
    data_dir::{DataDir, holder_name},
    duration::show_ms,
    error::CliError,
    output,
    progress::{End, Progress},
    store_access::StoreAccess,
};

/// Look-ups under way.
pub struct LookingUp {
    instance: String,
    /// The workers of this process.
    refreshers: Option<Refreshers>,
}

impl LookingUp {
    /// Says what they will take, and begins them unless a server sends them.
    ///
    /// # Errors
    /// [`CliError`] for a configuration with which nothing can be looked up.
    pub async fn begin(
        instance: &str,
        totals: &TrackedPosts,
        store_access: &mut StoreAccess,
        config: &Config,
    ) -> Result<Self, CliError> {
        let mut looking_up = Self {
            instance: instance.to_owned(),
            refreshers: None,
        };
        let plan = looking_up.plan(store_access).await?;
        output::note(&plan::shown(&plan, totals.waiting));
        if let StoreAccess::Here { host, .. } = store_access
            && let Some(mut access) = host.access.clone()
        {
            access.store_disk = DataDir::new(&config.store)?.watch_disk();
            host.store_disk = access.store_disk.clone();
            let source = admin::find(&host.store, &totals.source).await?;
            let options = RefreshOptions {
                only: Some(source.instance.id),
                ..config.refresh.options(holder_name())?
            };
            let refreshers = Refreshers::start(host.store.clone(), access, options);
            host.refreshers = Some(refreshers.clone());
            looking_up.refreshers = Some(refreshers);
        }
        Ok(looking_up)
    }

    /// Waits until none is left, or until the stop signal. Returns what there is then.
    ///
    /// # Errors
    /// [`CliError`] if the store does not answer.
    pub async fn wait(
        self,
        totals: TrackedPosts,
        store_access: &mut StoreAccess,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<TrackedPosts, CliError> {
        let waited = self.watch(totals, store_access, stop).await;
        if let Some(refreshers) = &self.refreshers {
            refreshers.stop().await;
        }
        waited?;
        // What ended while they stopped is there too.
        self.totals(store_access).await
    }

    async fn watch(
        &self,
        mut totals: TrackedPosts,
        store_access: &mut StoreAccess,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), CliError> {
        let begun = Begun {
            waiting: totals.waiting,
            found: totals.found,
            missing: totals.missing,
        };
        let mut progress = Progress::start(End::Count(totals.waiting));
        let mut last_news = (Instant::now(), totals.waiting);
        let mut asked: Option<(Instant, LookUpPlan)> = None;
        while totals.waiting > 0 && !*stop.borrow() {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = stop.changed() => {}
            }
            totals = self.totals(store_access).await?;
            if totals.waiting != last_news.1 {
                last_news = (Instant::now(), totals.waiting);
                asked = None;
            } else if last_news.0.elapsed() >= SILENCE
                && asked.as_ref().is_none_or(|(at, _)| at.elapsed() >= SILENCE)
            {
                asked = Some((Instant::now(), self.plan(store_access).await?));
            }
            let why = asked.as_ref();
            let why = why.map(|(_, plan)| standing_still(plan, now_ms()));
            let done = begun.waiting.saturating_sub(totals.waiting);
            progress.show(done, "post", || begun.parts(&totals, why.clone()));
        }
        progress.finish();
        Ok(())
    }

    async fn totals(&self, store_access: &mut StoreAccess) -> Result<TrackedPosts, CliError> {
        let instance = self.instance.clone();
        store_access.execute(CountTracked { instance }).await
    }

    async fn plan(&self, store_access: &mut StoreAccess) -> Result<LookUpPlan, CliError> {
        let instance = self.instance.clone();
        store_access.execute(PlanLookUps { instance }).await
    }
}

/// Where it began.
struct Begun {
    waiting: u64,
    found: u64,
    missing: u64,
}

impl Begun {
    fn parts(&self, totals: &TrackedPosts, why: Option<String>) -> Vec<String> {
        let mut parts: Vec<String> = why.into_iter().collect();
        if totals.waiting == self.waiting && parts.is_empty() {
            parts.push("waiting for the first answers".to_owned());
        }
        let found = totals.found.saturating_sub(self.found);
        let missing = totals.missing.saturating_sub(self.missing);
        parts.push(format!("{found} found"));
        parts.push(format!("{missing} unavailable"));
        parts
    }
}

/// Why nothing is looked up.
fn standing_still(plan: &LookUpPlan, now_ms: i64) -> String {
    let reason = plan.reason.as_deref();
    let until = plan
        .until_ms
        .map(|until_ms| until_ms.saturating_sub(now_ms).max(0));
    let next = plan.next_lookup_ms.filter(|next_ms| *next_ms > now_ms);
    let next = next.map(|next_ms| show_ms(whole_seconds(next_ms - now_ms)));
    match (reason, until, next) {
        (Some(reason), Some(ms), _) => format!("{reason}; it goes on in {}", show_ms(ms)),
        (Some(reason), None, Some(next)) => format!("{reason}; trying again in {next}"),
        (Some(reason), None, None) => format!("{reason}; trying again"),
        // A post that was not found is asked for once more before it counts as unavailable.
        (None, _, Some(next)) => format!("asking again in {next}"),
        (None, _, None) => "no answer yet; `driftline refresh status` shows more".to_owned(),
    }
}

/// Rounded up, ms.
fn whole_seconds(ms: i64) -> i64 {
    ms.saturating_add(999) / 1_000 * 1_000
}

const LOOK: Duration = Duration::from_millis(500);
/// Without news for so long, the reason is shown.
const SILENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::{super::plan::tests::single_look_ups, *};

    #[test]
    fn a_post_that_was_not_found_is_asked_for_again_at_its_due_time() {
        let mut plan = LookUpPlan {
            next_lookup_ms: Some(139_001),
            ..single_look_ups()
        };
        assert_eq!(standing_still(&plan, 100_000), "asking again in 40s");
        assert!(standing_still(&plan, 139_001).contains("no answer yet"));
        plan.reason = Some("the server failed".into());
        let text = standing_still(&plan, 129_001);
        assert_eq!(text, "the server failed; trying again in 10s");
        plan.next_lookup_ms = Some(100_000);
        let text = standing_still(&plan, 100_000);
        assert_eq!(text, "the server failed; trying again");
    }
}
