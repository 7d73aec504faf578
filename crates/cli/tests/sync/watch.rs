//! `replica watch` brings changes both ways by itself, until it is ended.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{replica_scene::Scene, wait_for};

/// A `replica watch` whose standard output is a pipe.
struct Watch {
    child: Child,
    lines: Receiver<String>,
    /// The file of its standard error.
    log: PathBuf,
}

impl Watch {
    fn start(scene: &Scene, replica: &str, every: &str) -> Self {
        let log = scene.data_dir.folder().join(format!("{replica}.log"));
        let line = [
            "--json",
            "replica",
            "--replica",
            replica,
            "watch",
            "--every",
            every,
        ];
        let mut command = scene.data_dir.command(&line);
        let command = command.stdout(Stdio::piped());
        let command = command.stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            // The receiver is gone: the pipe is closed at the next line.
            let mut lines = stdout.lines().map_while(Result::ok);
            let _ = lines.try_for_each(|line| sender.send(line));
        });
        Self { child, lines, log }
    }

    /// The report of the next round that brought changes.
    fn report(&self) -> Value {
        let line = self.lines.recv_timeout(MAX_WAIT).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Closes the pipe at its next line.
    fn close_output(&mut self) {
        self.lines = mpsc::channel().1;
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// The number of times that it failed and tries again.
    fn failures(&self) -> usize {
        self.log().matches("trying again in").count()
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    fn exit_status(&mut self) -> Option<i32> {
        wait_for("the watch ends", || self.has_ended());
        self.child.wait().unwrap().code()
    }

    fn terminate(&mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        // A second signal during its end changes nothing.
        let sent = Command::new("kill").args(["-TERM", &id, &id]).status();
        assert!(sent.unwrap().success());
        self.exit_status()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn has(scene: &Scene, replica: &str, key: &str) -> bool {
    let objects = scene.replica(replica, &["show"]);
    objects.iter().any(|object| object["key"] == key)
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_other_devices_wake_a_watch_and_its_own_are_sent() {
    let scene = Scene::begin().await;
    for replica in ["one", "two"] {
        scene.init(replica);
    }
    let mut sending = Watch::start(&scene, "one", "1s");
    // It has only its stream of events: the time between two rounds is longer than the test.
    let mut woken = Watch::start(&scene, "two", "1h");
    // Its first round and the event at the beginning of its stream may bring one change each, and the others not.
    for number in 0..4 {
        let (uri, id) = &scene.posts[number / 2];
        let key = match number % 2 {
            0 => {
                let path = format!("/api/v1/statuses/{id}/bookmark");
                scene.post(&path, &json!({})).await;
                format!("bookmark:{uri}")
            }
            _ => {
                scene.replica("one", &["note", uri, "to read"]);
                format!("note:{uri}")
            }
        };
        wait_for(&format!("{key} comes"), || has(&scene, "two", &key));
        let report = woken.report();
        assert!(report["pulled"].as_u64() >= Some(1), "{report}");
        assert_eq!(
            (&report["pushed"], &report["dirty"]),
            (&json!(0), &json!(0))
        );
    }
    wait_for("both have the same", || {
        scene.replica("one", &["show"]) == scene.replica("two", &["show"])
    });

    woken.close_output();
    let mut number = 0;
    wait_for("the watch without a reader ends", || {
        number += 1;
        scene.replica("one", &["note", scene.uri(0), &number.to_string()]);
        woken.has_ended()
    });
    assert_eq!(woken.exit_status(), Some(0), "{}", woken.log());
    assert_eq!(sending.terminate(), Some(0), "{}", sending.log());
    for watch in [&woken, &sending] {
        assert!(!watch.log().contains("panicked"), "{}", watch.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_go_on_after_their_server_was_killed() {
    let mut scene = Scene::begin().await;
    for replica in REPLICAS {
        scene.init(replica);
    }
    let mut watches = REPLICAS.map(|replica| Watch::start(&scene, replica, "2s"));
    let note_of = |post: usize, scene: &Scene| format!("note:{}", scene.uri(post));
    scene.replica("one", &["note", scene.uri(0), "before"]);
    wait_for("the first note comes", || {
        has(&scene, "two", &note_of(0, &scene))
    });

    scene.kill();
    for (post, replica) in [(1, "one"), (2, "two")] {
        scene.replica(replica, &["note", scene.uri(post), "meanwhile"]);
    }
    for watch in &watches {
        wait_for("the watch tries again", || watch.failures() > 0);
    }
    scene.start();
    for (post, replica) in [(1, "two"), (2, "one")] {
        let key = note_of(post, &scene);
        wait_for(&format!("{key} comes"), || has(&scene, replica, &key));
    }
    for replica in REPLICAS {
        wait_for("all is sent", || {
            scene.replica(replica, &["status"])[0]["dirty"] == 0
        });
    }

    // The wait for another try ends with the signal, too.
    let before = watches.each_ref().map(Watch::failures);
    scene.kill();
    for (watch, before) in watches.iter_mut().zip(before) {
        wait_for("the watch tries again", || watch.failures() > before);
        assert_eq!(watch.terminate(), Some(0), "{}", watch.log());
        assert!(!watch.log().contains("panicked"), "{}", watch.log());
    }
    for replica in REPLICAS {
        assert!(scene.replica(replica, &["conflicts", "--all"]).is_empty());
    }
}

const REPLICAS: [&str; 2] = ["one", "two"];
/// Only a failing test waits that long.
const MAX_WAIT: Duration = Duration::from_secs(180);
