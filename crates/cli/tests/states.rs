//! What `source list`, `verify` and the log say of sources that fail, that work again and that have
//! no posts.
#![allow(clippy::unwrap_used)]

mod support;

use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer, Timeline},
    quirks::{Kinds, Quirks},
};
use serde_json::Value;
use support::{
    DataDir,
    moody_server::{Mood, MoodyServer},
    quiet::steady,
    wait_for,
};

/// A source that a server reads, with looks soon after its polls.
struct Scene {
    data_dir: DataDir,
    server: MoodyServer,
    running: support::Running,
}

impl Scene {
    fn begin(behind: &str, mood: Mood) -> Self {
        Self::with_second_look(behind, mood, "500ms")
    }

    fn with_second_look(behind: &str, mood: Mood, second_look: &str) -> Self {
        let data_dir = DataDir::new();
        let server = MoodyServer::before(behind, mood);
        let (running, _) = data_dir.serve(&["--allow-private"]);
        let add = ["source", "add", &server.url, "--no-check", "--name", "sim"];
        let fast = [
            "--every",
            "200ms",
            "--second-look",
            second_look,
            "--spacing",
            "20ms",
        ];
        data_dir.json(&[&add[..], &fast, &["--backfill", "none"]].concat());
        Self {
            data_dir,
            server,
            running,
        }
    }

    fn row(&self) -> Value {
        let all = self.data_dir.json(&["source", "list"]);
        let mut rows = all.as_array().unwrap().iter();
        rows.find(|row| row["name"] == "sim").unwrap().clone()
    }

    fn verified(&self) -> Value {
        self.data_dir.json(&["source", "verify", "sim"])
    }

    fn instance(&self) -> Value {
        self.data_dir.json(&["instance", "show", &self.server.url])
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
    let sim = steady(20.0).await;
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
        wait_for("the error lasts", || {
            let error = &scene.verified()["last_error"];
            error["since_ms"].as_i64() < error["at_ms"].as_i64()
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
async fn a_wait_that_a_server_asks_for_is_shown_and_ends_when_it_answers_another_request() {
    let sim = steady(20.0).await;
    let mut scene = Scene::begin(&sim.url(), Mood::Good);
    wait_for("it is read", || scene.row()["state_text"] == "reading");
    scene.server.is_now(Mood::AsksToWait(503));
    wait_for("it waits", || scene.row()["wait"].is_object());
    let url = scene.server.url.clone();
    let is_shown = |scene: &Scene| {
        let (row, report, text) = (scene.row(), scene.verified(), scene.text());
        let status = scene.data_dir.json(&["status"]);
        let until_ms = row["wait"]["until_ms"].as_i64();
        for of in [&row, &report, &status["sources"][0]] {
            let state = of["state_text"].as_str().unwrap();
            let words = format!("the server fails; {url} asked to wait, ");
            assert!(state.contains(&words), "{of}");
            assert_eq!(of["wait"]["server"], *url, "{of}");
            assert_eq!(of["wait"]["until_ms"].as_i64(), until_ms, "{of}");
        }
        let until = format!("as {url} asked");
        let mut lines = text.lines().map(str::trim_start);
        let is_it = |line: &str| line.starts_with("waits ") && line.ends_with(&until);
        assert!(lines.any(is_it), "{text}");
        until_ms
    };
    let until_ms = is_shown(&scene);
    let logged = scene.logged("the server asked to wait 10m");
    assert_eq!(logged, 1, "{}", scene.data_dir.log());
    // The wait goes on across a restart.
    scene.running.signal("TERM");
    scene.running.ended();
    scene.running = scene.data_dir.serve(&["--allow-private"]).0;
    wait_for("it waits again", || scene.row()["wait"].is_object());
    assert_eq!(is_shown(&scene), until_ms);
    scene.server.is_now(Mood::Good);
    let add = ["source", "add", &url, "--no-check", "--timeline", "local"];
    scene.data_dir.json(&add);
    wait_for("it is read again", || scene.row()["state"] == "reading");
    assert!(driftline_runtime::now_ms() < until_ms.unwrap() - 30_000);
}

/// A timeline that has fallen silent, and the ID of one of its newest posts.
async fn quiet() -> (SimServer, u64) {
    let config = ServerConfig {
        world: WorldConfig {
            publish_for_ms: Some(19_000),
            ..WorldConfig::punctual(20.0)
        },
        history_ms: 20_000,
        ..ServerConfig::default()
    };
    let sim = SimServer::start(config, 1, Clock::Real).await.unwrap();
    let posts = sim.truth(&Timeline::Public).unwrap().posts;
    let ids = posts
        .iter()
        .map(|post| post.id.as_str().parse::<u64>().unwrap());
    let mut ids: Vec<u64> = ids.collect();
    ids.sort_unstable();
    let id = ids[ids.len() - 9];
    (sim, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_cannot_be_read_is_counted_and_listed() {
    let (sim, id) = quiet().await;
    let scene = Scene::begin(&sim.url(), Mood::Spoils(id));
    wait_for("it is complete", || scene.verified()["complete"] == true);
    let (row, report, text) = (scene.row(), scene.verified(), scene.text());
    assert_eq!(report["unreadable"], 1, "{report}");
    assert_eq!(row["unreadable"], 1, "{row}");
    let verdict = text.lines().next().unwrap();
    assert!(
        verdict.contains(", complete but for 1 unreadable"),
        "{verdict}"
    );
    assert!(
        text.contains(
            "  unreadable   1 post, kept as it came; see `driftline source unreadable sim`"
        ),
        "{text}"
    );
    let listed = scene.data_dir.run(&["source", "list"]).stdout;
    assert!(listed.contains("; 1 unreadable"), "{listed}");

    let items = scene.data_dir.json(&["source", "unreadable", "sim"]);
    let items = items.as_array().unwrap();
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!(items[0]["id"], *id.to_string());
    let listed = scene.data_dir.run(&["source", "unreadable", "sim"]);
    assert_eq!(listed.status, 0, "{listed:?}");
    let head = listed.stdout.lines().next().unwrap();
    assert!(head.starts_with(&format!("{id}, since ")), "{head}");
    assert!(listed.stdout.contains("no ID"), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_bounds_are_ignored_nothing_is_called_complete_and_the_reason_is_given() {
    let quirks = Quirks {
        since_id_ignored: Kinds::ALL,
        min_id_ignored: Kinds::ALL,
        max_id_ignored: Kinds::ALL,
        ..Quirks::default()
    };
    let world = WorldConfig {
        quirks,
        ..WorldConfig::punctual(20.0)
    };
    let sim = SimServer::start(world, 1, Clock::Real).await.unwrap();
    let scene = Scene::begin(&sim.url(), Mood::Good);
    wait_for("it is known", || scene.row()["state"] == "cannot_be_proven");
    // Each parameter is known to be ignored once a request with it was answered.
    wait_for("every parameter was tried", || {
        let timeline = &scene.instance()["timelines"][0];
        ["since_id", "min_id", "max_id"].map(|name| timeline[name] == "ignored") == [true; 3]
    });
    let why = "no answer has shown that the server honours max_id or min_id";
    let (row, report, text) = (scene.row(), scene.verified(), scene.text());
    let state = row["state_text"].as_str().unwrap();
    assert!(
        state.starts_with(&format!("cannot be proven: {why}")),
        "{state}"
    );
    let listed = scene.data_dir.run(&["source", "list"]).stdout;
    assert!(listed.contains(state), "{listed}");
    assert_eq!(report["verdict"], "cannot_be_proven", "{report}");
    assert_eq!(report["complete"], false, "{report}");
    assert_eq!(report["settled"], false, "{report}");
    assert!(
        report["unprovable"].as_str().unwrap().starts_with(why),
        "{report}"
    );
    let verdict = text.lines().next().unwrap();
    assert!(verdict.contains("NOT known to be complete"), "{verdict}");
    assert!(verdict.contains(why), "{verdict}");
    assert_eq!(text.matches(why).count(), 1, "{text}");
    // A report that was made is no failure of the command.
    assert_eq!(scene.data_dir.run(&["source", "verify", "sim"]).status, 0);

    let shown = scene.instance();
    let timeline = &shown["timelines"][0];
    assert_eq!(timeline["link_only"], true, "{shown}");
    let text = scene.data_dir.run(&["instance", "show", &scene.server.url]);
    assert!(
        text.stdout.contains("by their Link headers at most"),
        "{text:?}"
    );
    assert!(
        text.stdout
            .contains(&format!("cannot be proven complete: {why}")),
        "{text:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn look_ups_that_prove_nothing_are_counted_and_shown_by_credential() {
    let sim = steady(20.0).await;
    let scene = Scene::with_second_look(&sim.url(), Mood::Good, "5s");
    wait_for("it is read", || {
        scene.verified()["posts"].as_u64() >= Some(50)
    });
    let shown = scene.instance();
    assert_eq!(shown["timelines"][0]["stable_ids"], true, "{shown}");
    assert_eq!(shown["timelines"][0]["order"], "numeric", "{shown}");
    let look_ups = &shown["look_ups"][0];
    assert_eq!(look_ups["has_token"], false, "{shown}");
    assert_eq!(look_ups["posts"], Value::Null, "{shown}");

    let newest = scene.data_dir.export("sim").pop().unwrap();
    let id = newest["upstream_id"].as_str().unwrap().parse().unwrap();
    scene.server.is_now(Mood::Hides(id));
    wait_for("a look-up proves nothing", || {
        scene.verified()["counters"]["not_confirmed"].as_u64() >= Some(1)
    });
    let (report, text) = (scene.verified(), scene.text());
    assert_eq!(report["counters"]["not_confirmed"], 1, "{report}");
    assert_eq!(report["deleted"], 0, "{report}");
    let said = text.lines().filter(|line| line.contains("confirmed"));
    assert_eq!(
        said.collect::<Vec<_>>(),
        ["  unconfirmed  1 look-up of a post that was missing from a page proved nothing"],
        "{text}"
    );
    let shown = scene.instance();
    let posts = &shown["look_ups"][0]["posts"];
    assert_eq!(posts["found"], false, "{shown}");
    assert!(posts["at_ms"].as_i64() > Some(0), "{shown}");
    assert_eq!(shown["look_ups"][0]["boosts"], Value::Null, "{shown}");
    let text = scene.data_dir.run(&["instance", "show", &scene.server.url]);
    let row = text.stdout.lines().last().unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[1..], ["no", "not", "found", "unknown"], "{text:?}");
}
