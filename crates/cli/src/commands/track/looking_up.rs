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
    output::{self, Progress},
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
            at: Instant::now(),
            waiting: totals.waiting,
            found: totals.found,
            missing: totals.missing,
        };
        let template = "{elapsed_precise} {bar:20} {wide_msg}";
        let mut progress = Progress::start(template, Some(totals.waiting));
        let mut last_news = (Instant::now(), totals.waiting);
        let mut why = None;
        while totals.waiting > 0 && !*stop.borrow() {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = stop.changed() => {}
            }
            totals = self.totals(store_access).await?;
            if totals.waiting != last_news.1 {
                last_news = (Instant::now(), totals.waiting);
                why = None;
            } else if last_news.0.elapsed() >= SILENCE {
                why = Some(standing_still(&self.plan(store_access).await?, now_ms()));
            }
            progress.show(|bar| {
                bar.set_position(begun.waiting.saturating_sub(totals.waiting));
                begun.shown(&totals, why.as_deref())
            });
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
    at: Instant,
    waiting: u64,
    found: u64,
    missing: u64,
}

impl Begun {
    fn shown(&self, totals: &TrackedPosts, why: Option<&str>) -> String {
        let done = self.waiting.saturating_sub(totals.waiting);
        let seconds = self.at.elapsed().as_secs_f64();
        let rate = done as f64 / seconds.max(0.001);
        let left = why.map(str::to_owned).unwrap_or_else(|| match done {
            0 => "waiting for the first answers".to_owned(),
            _ => format!(
                "{rate:.1}/s, about {} left",
                show_ms((totals.waiting as f64 / rate * 1000.0) as i64)
            ),
        });
        format!(
            "looked up {done} of {}: {} found, {} unavailable; {left}",
            self.waiting,
            totals.found.saturating_sub(self.found),
            totals.missing.saturating_sub(self.missing),
        )
    }
}

/// Why nothing is looked up.
fn standing_still(plan: &LookUpPlan, now_ms: i64) -> String {
    let reason = plan.reason.as_deref();
    let until = plan
        .until_ms
        .map(|until_ms| until_ms.saturating_sub(now_ms).max(0));
    match (reason, until) {
        (Some(reason), Some(ms)) => format!("{reason}; it goes on in {}", show_ms(ms)),
        (Some(reason), None) => format!("{reason}; trying again"),
        (None, _) => "no answer yet; `driftline refresh status` shows more".to_owned(),
    }
}

const LOOK: Duration = Duration::from_millis(500);
/// Without news for so long, the reason is shown.
const SILENCE: Duration = Duration::from_secs(5);
