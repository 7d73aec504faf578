//! `demo`: a simulated server, Driftline, and two baseline pollers.

mod freshness;
mod mirrored;
mod scene;
mod score;
mod script;
mod table;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use clap::Args;
use driftline_core::api::Api;
use driftline_net::{Http, Options};
use driftline_runtime::now_ms;
use driftline_sim::{
    baseline::{Poller, WalkEnd},
    http::{Clock, SimServer, Timeline},
};
use driftline_upstream::{Address, Credential, Upstream};
use freshness::Freshness;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use mirrored::{Mirrored, Outcome};
use scene::Scene;
use score::{Published, Score, Seen};
use script::Script;
use tokio::{sync::watch, time::sleep};

use crate::{
    duration::{duration, parse_ms, show_ms},
    error::CliError,
    output, stop,
};

/// Mirrors a simulated server next to two baseline pollers and compares what each
/// of them missed.
///
/// The server publishes posts of which some become visible late, some are
/// backdated, edited or deleted, and it fails as servers do. All three pollers
/// have the same request budget. Exit status 0 only if Driftline missed
/// nothing.
#[derive(Debug, Args)]
pub struct Demo {
    /// How long it takes; at least 20s.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_ms, default_value = "30s")]
    for_ms: i64,
    /// Another seed is another world.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Everything that a poller has seen, for all to look at.
type Shared = Arc<Mutex<Seen>>;

impl Demo {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, json: bool) -> Result<(), CliError> {
        let scene = Scene::lasting(self.for_ms)?;
        let stop = stop::on_signal()?;
        let server = SimServer::start(scene.world(), self.seed, Clock::Real)
            .await
            .map_err(|error| CliError::failed(format!("no loopback port is available: {error}")))?;
        let begun_ms = now_ms();
        output::note(&format!(
            "a simulated server publishes for {} with seed {}; all polls come every {} with {}; done in {}",
            show_ms(scene.publish_ms()),
            self.seed,
            show_ms(scene.every_ms()),
            scene.budget(),
            show_ms(self.for_ms)
        ));
        let polled = self.poll(&server, &scene, begun_ms, stop.clone()).await;
        let (seen, mirrored) = match polled {
            Ok(polled) if !*stop.borrow() => polled,
            ended => {
                server.shutdown().await;
                ended?;
                return Err(CliError::failed("stopped before the end"));
            }
        };
        let truth = server.truth(&Timeline::Public).unwrap_or_default();
        let published = Published::new(truth, scene.stay_ms());
        let fresh = Freshness::new(&server, &published, &seen, &mirrored);
        server.shutdown().await;
        let [naive, clamp] = seen.map(|seen| Score::new(&published, &seen));
        let driftline = Score::new(&published, &mirrored.seen);
        if json {
            output::json(&serde_json::json!({
                "seed": self.seed,
                "published": published.counted.len(),
                "short_lived": published.short_lived.len(),
                "naive": naive,
                "clamp": clamp,
                "driftline": driftline,
                "freshness": fresh,
            }))?;
        } else {
            let scores = [
                ("naive", &naive),
                ("clamp", &clamp),
                ("driftline", &driftline),
            ];
            for line in table::lines(&published, &scene, &scores) {
                output::line(&line)?;
            }
            output::line(&fresh.line())?;
        }
        match driftline.missed {
            0 => Ok(()),
            missed => {
                explain(&published, &mirrored, begun_ms);
                let message = format!("driftline missed {missed} posts");
                Err(CliError::failed(message))
            }
        }
    }

    /// Has all three poll to the end: what the baselines saw, and Driftline's outcome.
    async fn poll(
        &self,
        server: &SimServer,
        scene: &Scene,
        begun_ms: i64,
        stop: watch::Receiver<bool>,
    ) -> Result<([Seen; 2], Outcome), CliError> {
        let http = Options {
            allow_private: true,
            ..Options::default()
        };
        let http = Http::new(http).map_err(CliError::failed)?;
        let start = |token: &str, poller: Poller| {
            let address = Address::parse(&server.url()).map_err(CliError::failed)?;
            let credential = Credential::Bearer(token.to_owned().into());
            let client = Upstream::new(Api::Mastodon, http.clone(), address, credential)
                .map_err(CliError::failed)?;
            let script = Script {
                client,
                poller: poller.walking_to(WalkEnd::EmptyPage),
                every: duration(scene.every_ms()),
                until_ms: begun_ms + self.for_ms,
            };
            Ok::<_, CliError>(script.start(stop.clone()))
        };
        let mirrored =
            Mirrored::start(&server.url(), http.clone(), scene, begun_ms, stop.clone()).await?;
        let naive = start("naive", Poller::naive())?;
        let clamp = start("clamp", Poller::clamp(CLAMP_MS))?;
        let shared = [
            ("naive", Arc::clone(&naive.seen)),
            ("clamp", Arc::clone(&clamp.seen)),
            ("driftline", Arc::clone(&mirrored.seen)),
        ];
        let watching = tokio::spawn(watch(shared, begun_ms, self.for_ms));
        let seen = [naive.end().await?, clamp.end().await?];
        let mirrored = mirrored.end().await;
        watching.abort();
        let _ = watching.await;
        Ok((seen, mirrored?))
    }
}

/// Names the posts that were missed, and the state of the ledger.
fn explain(published: &Published, mirrored: &Outcome, begun_ms: i64) {
    for post in published.missed_by(&mirrored.seen) {
        output::note(&format!(
            "driftline missed {}: visible {} after the start, {} after its ID's time, for {}",
            post.id,
            show_ms(post.visible_at_ms - begun_ms),
            show_ms(post.lateness_ms()),
            post.visible_for_ms.map_or("good".into(), show_ms)
        ));
    }
    output::note(&format!("state of driftline: {}", mirrored.ledger));
}

/// Shows the progress of all three, until it is aborted.
async fn watch(pollers: [(&'static str, Shared); 3], begun_ms: i64, for_ms: i64) {
    let bars = output::is_watched().then(|| {
        let all = MultiProgress::new();
        pollers.each_ref().map(|(name, _)| {
            let bar = all.add(ProgressBar::new(u64::try_from(for_ms).unwrap_or(0)));
            if let Ok(style) = ProgressStyle::with_template("{prefix:>9} [{bar:24}] {msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(*name);
            bar
        })
    });
    let between = match bars {
        Some(_) => Duration::from_millis(200),
        None => Duration::from_secs(5),
    };
    loop {
        sleep(between).await;
        let elapsed_ms = now_ms() - begun_ms;
        for (number, (name, seen)) in pollers.iter().enumerate() {
            let text = lock(seen).line();
            match &bars {
                Some(bars) => {
                    bars[number].set_position(u64::try_from(elapsed_ms).unwrap_or(0));
                    bars[number].set_message(text);
                }
                None => output::note(&format!("{:>6}  {name:<9} {text}", show_ms(elapsed_ms))),
            }
        }
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The seed's `k`.
const CLAMP_MS: i64 = 1_000;
