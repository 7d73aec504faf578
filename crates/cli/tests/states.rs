//! What `source list`, `verify` and the log say of sources that fail, that work again and that have
//! no posts.
#![allow(clippy::unwrap_used)]

mod support;

use driftline_sim::{
    WorldConfig,
    http::{Clock, SimServer},
};
use serde_json::Value;
use support::{
    DataDir,
    moody_server::{Mood, MoodyServer},
    wait_for,
};

/// A source that a server reads, with looks soon after its polls.
struct Scene {
    data_dir: DataDir,
    server: MoodyServer,
    _running: support::Running,
}

impl Scene {
    fn begin(behind: &str, mood: Mood) -> Self {
        let data_dir = DataDir::new();
        let server = MoodyServer::before(behind, mood);
        let (running, _) = data_dir.serve(&["--allow-private"]);
        let add = ["source", "add", &server.url, "--no-check", "--name", "sim"];
        let fast = [
            "--every",
            "200ms",
            "--second-look",
            "500ms",
            "--spacing",
            "20ms",
        ];
        data_dir.json(&[&add[..], &fast, &["--backfill", "none"]].concat());
        Self {
            data_dir,
            server,
            _running: running,
        }
    }

    fn row(&self) -> Value {
        self.data_dir.json(&["source", "list"])[0].clone()
    }

    fn verified(&self) -> Value {
        self.data_dir.json(&["source", "verify", "sim"])
    }

    fn text(&self) -> String {
        self.data_dir.run(&["source", "verify", "sim"]).stdout
    }

    /// How many log lines of the source contain these words.
    fn logged(&self, words: &str) -> usize {
        let log = self.data_dir.log();
        let lines = log.lines().filter(|line| line.contains("source=sim"));
        lines.filter(|line| line.contains(words)).count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_begins_to_fail_and_works_again_is_shown_and_logged_once() {
    let sim = SimServer::start(WorldConfig::punctual(20.0), 1, Clock::Real);
    let sim = sim.await.unwrap();
    for (mood, kind, said) in [
        (Mood::Refuses(401), "unauthorized", "refused"),
        (Mood::Refuses(500), "server_error", "the server fails"),
        (Mood::HangsUp, "unreachable", "cannot be reached"),
        (Mood::RefusesLooks(500), "server_error", "the server fails"),
    ] {
        let scene = Scene::begin(&sim.url(), Mood::Good);
        wait_for("it is complete", || scene.verified()["complete"] == true);
        assert_eq!(scene.row()["state_text"], "reading", "{mood:?}");
        scene.server.is_now(mood);
        wait_for("it fails more than once", || {
            scene.row()["last_error"]["count"].as_u64() >= Some(3)
        });
        let (row, report, text) = (scene.row(), scene.verified(), scene.text());
        assert_eq!(row["state"], "failing", "{mood:?}: {row}");
        assert_eq!(row["fault"]["kind"], kind, "{mood:?}: {row}");
        let state = row["state_text"].as_str().unwrap();
        assert!(
            state.starts_with("failing: ") && state.contains(said),
            "{state}"
        );
        assert_eq!(report["state"], "failing", "{mood:?}: {report}");
        assert_eq!(report["last_error"]["over"], false, "{mood:?}: {report}");
        assert!(report["last_error"]["since_ms"].as_i64() < report["last_error"]["at_ms"].as_i64());
        assert!(text.contains("in a row since"), "{mood:?}: {text}");
        if !matches!(mood, Mood::RefusesLooks(_)) {
            assert_eq!(report["complete"], false, "{mood:?}: {report}");
            let verdict = text.lines().next().unwrap();
            assert!(
                verdict.contains("NOT known to be complete: polls fail"),
                "{verdict}"
            );
        }
        wait_for("it is logged", || scene.logged("fails: ") == 1);
        scene.server.is_now(Mood::Good);
        wait_for("it works again", || scene.row()["state"] == "reading");
        wait_for("that is logged", || {
            scene.logged("is read again, after") == 1
        });
        wait_for("it is complete again", || {
            scene.verified()["complete"] == true
        });
        assert_eq!(scene.verified()["last_error"]["over"], true, "{mood:?}");
        assert_eq!(
            scene.logged("fails: "),
            1,
            "{mood:?}: {}",
            scene.data_dir.log()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_without_posts_is_quiet_and_says_how_often_it_was_polled() {
    let scene = Scene::begin("http://127.0.0.1:9", Mood::Empty);
    wait_for("it was polled", || {
        scene.verified()["polls"]["answered"].as_u64() >= Some(5)
    });
    assert_eq!(scene.row()["state_text"], "quiet");
    let (report, text) = (scene.verified(), scene.text());
    // One empty answer may come from a cold cache.
    assert_eq!(report["verdict"], "empty_so_far", "{report}");
    assert_eq!(report["complete"], false, "{report}");
    assert!(text.contains("no posts so far in "), "{text}");
    assert!(!text.contains("nothing read yet"), "{text}");
}
