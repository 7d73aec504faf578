//! `demo`: a simulated server, Driftline, and two baseline pollers.

mod baseline;
mod devices;
mod home;
mod mirrored;
mod scene;
mod score;

use std::convert::Infallible;

use clap::Args;
use devices::Devices;
use driftline_core::api::Api;
use driftline_net::{Http, Options};
use driftline_runtime::now_ms;
use driftline_sim::{
    TruePost,
    baseline::{Poller, WalkEnd},
    http::{Clock, SimServer, Timeline},
};
use driftline_upstream::{Address, Credential, Upstream};
use home::Home;
use indicatif::MultiProgress;
use mirrored::Mirrored;
use scene::{LAST_RUNG_MS, Scene};
use score::{PollerRecord, Progress, Published, Score};
use serde::Serialize;
use tokio::{sync::watch, time::sleep};

use crate::{
    duration::{duration, parse_ms, show_ms},
    error::CliError,
    output,
    progress::{self as progress_line, End},
    stop,
    table::{self, left, right},
};

/// Mirrors a simulated server next to two baseline pollers and compares what each
/// of them missed.
///
/// The server publishes posts of which some become visible late, some are
/// backdated, edited or deleted, and it fails as servers do. All three pollers
/// have the same request budget. In the end an account logs in and reads what
/// Driftline has in its home timeline, and a device of the account is edited
/// without a network. Exit status 0 only if Driftline missed nothing, the account
/// found all of it once, and no edit was lost.
#[derive(Debug, Args)]
pub struct Demo {
    /// How long it takes; at least 20s.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_ms, default_value = "30s")]
    for_ms: i64,
    /// Another seed is another world.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// What the naive poller, the clamp and Driftline saw.
type Polled = (PollerRecord, PollerRecord, Mirrored);

/// What the posts had got, and what each poller knows of it.
#[derive(Debug, Serialize)]
struct Freshness {
    /// Replies, boosts and favourites of all posts that were published, by now.
    counts: i64,
    /// What the naive poller stored of them: the counts at first sight.
    naive: i64,
    /// Likewise for the clamp.
    clamp: i64,
    /// What Driftline has after its refreshes.
    driftline: i64,
    /// Look-ups that the refreshes took.
    requests: u64,
    /// Posts in one of them, on average.
    posts_a_request: Option<f64>,
}

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
            show_ms(scene::EVERY_MS),
            scene.budget(),
            show_ms(self.for_ms)
        ));
        let polled = Box::pin(self.poll(&server, scene, begun_ms, stop.clone())).await;
        let outcome = match polled {
            Ok(_) if *stop.borrow() => {
                Err(CliError::Interrupted("stopped before the end".to_owned()))
            }
            Ok(polled) => self.compare(&server, &polled, begun_ms, json),
            Err(error) => Err(error),
        };
        server.shutdown().await;
        outcome
    }

    /// Has all three poll to the end, or to the stop signal.
    async fn poll(
        &self,
        server: &SimServer,
        scene: Scene,
        begun_ms: i64,
        stop: watch::Receiver<bool>,
    ) -> Result<Polled, CliError> {
        let (url, until_ms) = (server.url(), begun_ms + self.for_ms);
        let http = Http::new(Options {
            allow_private: true,
            ..Options::default()
        });
        let http = http.map_err(CliError::failed)?;
        let progress: [watch::Sender<Progress>; NAMES.len()] = Default::default();
        let baseline = |number: usize, poller: Poller| {
            let address = Address::parse(&url).map_err(CliError::failed)?;
            let token = Credential::Bearer(NAMES[number].to_owned().into());
            let client = Upstream::new(Api::Mastodon, http.clone(), address, token)
                .map_err(CliError::failed)?;
            let poller = poller.walking_to(WalkEnd::EmptyPage);
            let (stop, progress) = (stop.clone(), &progress[number]);
            Ok::<_, CliError>(baseline::poll(client, poller, until_ms, stop, progress))
        };
        let naive = baseline(0, Poller::naive())?;
        let clamp = baseline(1, Poller::clamp(CLAMP_MS))?;
        let (http, stop) = (http.clone(), stop.clone());
        let mirrored = mirrored::mirror(&url, http, scene, begun_ms, stop, &progress[2]);
        let polling = async {
            tokio::try_join!(
                async { Ok(naive.await) },
                async { Ok(clamp.await) },
                mirrored
            )
        };
        tokio::select! {
            polled = polling => polled,
            never = self.watch(&progress, begun_ms) => match never {},
        }
    }

    /// Shows the progress of all three, for ever.
    async fn watch(
        &self,
        progress: &[watch::Sender<Progress>; NAMES.len()],
        begun_ms: i64,
    ) -> Infallible {
        let all = MultiProgress::new();
        let bars = NAMES.map(|name| {
            let bar = progress_line::bar(
                End::Time(duration(self.for_ms)),
                "{prefix:>9} [{bar:16}] {wide_msg}",
            );
            all.add(bar).with_prefix(name)
        });
        loop {
            sleep(progress_line::between(&bars[0])).await;
            let elapsed_ms = now_ms() - begun_ms;
            for ((name, bar), progress) in NAMES.iter().zip(&bars).zip(progress) {
                let text = progress.borrow().to_string();
                bar.set_position(u64::try_from(elapsed_ms).unwrap_or(0));
                if bar.is_hidden() {
                    output::note(&format!(
                        "{:>6}  {name:<9} {text}",
                        show_ms(elapsed_ms / 1_000 * 1_000)
                    ));
                }
                bar.set_message(text);
            }
        }
    }

    /// Prints what each has missed.
    fn compare(
        &self,
        server: &SimServer,
        polled: &Polled,
        begun_ms: i64,
        json: bool,
    ) -> Result<(), CliError> {
        let truth = server.truth(&Timeline::Public).unwrap_or_default();
        let home = Home::new(&truth, &polled.2.home);
        let devices: &Devices = &polled.2.home.devices;
        let published = Published::new(truth, LAST_RUNG_MS);
        let freshness = Freshness::new(server, &published, polled);
        let (naive, clamp, mirrored) = polled;
        let scores = [naive, clamp, &mirrored.seen].map(|seen| Score::new(&published, seen));
        let [naive, clamp, driftline] = &scores;
        let answer = serde_json::json!({
            "seed": self.seed,
            "published": published.counted.len(),
            "short_lived": published.short_lived.len(),
            "naive": naive,
            "clamp": clamp,
            "driftline": driftline,
            "freshness": freshness,
            "home": home,
            "devices": devices,
        });
        output::reply(json, &answer, |_| {
            let mut lines = lines(&published, &scores, &freshness, &home);
            lines.extend(devices.lines());
            lines
        })?;
        match driftline.missed {
            0 if !home.is_complete() => Err(CliError::failed(home.line())),
            0 if !devices.have_converged() => Err(CliError::failed(devices.lines().join(" "))),
            0 => Ok(()),
            missed => {
                explain(&published, mirrored, begun_ms)?;
                Err(CliError::failed(format!("driftline missed {missed} posts")))
            }
        }
    }
}

impl Freshness {
    /// Compares what is held with what the server shows now.
    fn new(server: &SimServer, published: &Published, (naive, clamp, mirrored): &Polled) -> Self {
        let now = now_ms();
        let at = |ms, post: &TruePost| Some(server.counts_at(ms, &post.id)?.total());
        let at_first_sight =
            |seen: &PollerRecord| published.sum(|post| at(*seen.stored_at_ms.get(&post.id)?, post));
        Self {
            counts: published.sum(|post| at(now, post)),
            naive: at_first_sight(naive),
            clamp: at_first_sight(clamp),
            driftline: published.sum(|post| mirrored.counts.get(&post.id).copied()),
            requests: mirrored.refresh_stats.requests,
            posts_a_request: mirrored.refresh_stats.mean_posts(),
        }
    }

    /// It in words.
    fn line(&self) -> String {
        let part = |known: i64| 100.0 * known as f64 / self.counts.max(1) as f64;
        format!(
            "Of the {} replies, boosts and favourites by now, naive has {:.0} %, clamp {:.0} %, driftline {:.0} %: it looked stored posts up in {} requests, {:.1} posts each.",
            self.counts,
            part(self.naive),
            part(self.clamp),
            part(self.driftline),
            self.requests,
            self.posts_a_request.unwrap_or(0.0),
        )
    }
}

/// One line a poller, below a head; and what does not count.
fn lines(
    published: &Published,
    scores: &[Score; NAMES.len()],
    freshness: &Freshness,
    home: &Home,
) -> Vec<String> {
    let ms = |ms: Option<i64>| ms.map_or_else(|| "-".to_owned(), show_ms);
    let rows = NAMES.iter().zip(scores).map(|(name, score)| {
        [
            left("", name),
            right("published", published.counted.len()),
            right("stored", score.stored),
            right("missed", score.missed),
            right("duplicates", score.redundant),
            right("requests", score.requests),
            right("delay p50", ms(score.delay_p50_ms)),
            right("delay p99", ms(score.delay_p99_ms)),
        ]
    });
    let mut lines = table::lines(rows);
    if !published.short_lived.is_empty() {
        let [naive, clamp, driftline] = scores.each_ref().map(|score| score.short_lived_stored);
        lines.push(format!(
            "In addition, {} posts were deleted within {}, before a poller can be sure to see them; stored all the same: naive {naive}, clamp {clamp}, driftline {driftline}.",
            published.short_lived.len(),
            show_ms(LAST_RUNG_MS),
        ));
    }
    lines.push(freshness.line());
    lines.push(home.line());
    lines.push(home.deleted_line());
    lines
}

/// Names the posts that were missed, and the report.
fn explain(published: &Published, mirrored: &Mirrored, begun_ms: i64) -> Result<(), CliError> {
    for post in published.missed_by(&mirrored.seen) {
        output::note(&format!(
            "driftline missed {}: visible {} after the start, {} after its ID's time, for {}",
            post.id,
            show_ms(post.visible_at_ms - begun_ms),
            show_ms(post.lateness_ms()),
            post.visible_for_ms.map_or("good".into(), show_ms)
        ));
    }
    let report = serde_json::to_string(&mirrored.report).map_err(CliError::failed)?;
    output::note(&format!("state of driftline: {report}"));
    Ok(())
}

/// The pollers, and the tokens of the baselines.
const NAMES: [&str; 3] = ["naive", "clamp", "driftline"];
/// The seed's `k`.
const CLAMP_MS: i64 = 1_000;
