//! Random edits on two replicas and their server, and the contents that they must lead to.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::{
    note_history::{Conflict, NoteEdit, NoteHistory, lines_of},
    support::replica_scene::Scene,
};

/// The edits so far.
#[derive(Default)]
pub struct Edits {
    /// The number of the last edit.
    number: u64,
    pub notes: NoteHistory,
    /// The last edit of a bookmark on each replica, by the post: true if it added it.
    bookmarks: BTreeMap<String, BTreeMap<&'static str, bool>>,
    /// The largest place of the read marker.
    marker: u64,
    /// The titles of the server's lists, by their IDs.
    lists: BTreeMap<String, String>,
}

impl Edits {
    /// Edits notes, bookmarks and the read marker on a replica, without a network.
    pub fn on_replica(&mut self, scene: &Scene, replica: &'static str, rng: &mut ChaCha8Rng) {
        let mut notes = notes_of(&scene.replica(replica, &["show", "--kind", "note"]));
        for _ in 0..rng.random_range(1..4) {
            self.number += 1;
            match rng.random_range(0..10) {
                0..=5 => self.edit_note(scene, replica, &mut notes, rng),
                6..=8 => self.edit_bookmark(scene, replica, rng),
                _ => {
                    self.marker = FIRST_PLACE + self.number;
                    let place = self.marker.to_string();
                    assert_changed(&scene.replica(replica, &["read", "home", &place]));
                }
            }
        }
    }

    fn edit_note(
        &mut self,
        scene: &Scene,
        replica: &'static str,
        notes: &mut BTreeMap<String, Vec<String>>,
        rng: &mut ChaCha8Rng,
    ) {
        let uri = scene.uri(rng.random_range(0..POSTS));
        let key = format!("note:{uri}");
        let before = notes.remove(&key).unwrap_or_default();
        let (mut after, mut line) = (Vec::new(), None);
        if before.is_empty() || rng.random_bool(0.85) {
            after = match before.is_empty() {
                true => Vec::from(EMPTY_NOTE.map(str::to_owned)),
                false => before.clone(),
            };
            let written = format!("edit {} on {replica}", self.number);
            let at = 2 * rng.random_range(0..3_usize);
            after[at].clone_from(&written);
            assert_changed(&scene.replica(replica, &["note", uri, &after.join("\n")]));
            notes.insert(key.clone(), after.clone());
            line = Some(written);
        } else {
            assert_changed(&scene.replica(replica, &["note", uri, "--remove"]));
        }
        self.notes.push(NoteEdit {
            replica,
            key,
            line,
            before,
            after,
        });
    }

    fn edit_bookmark(&mut self, scene: &Scene, replica: &'static str, rng: &mut ChaCha8Rng) {
        let uri = scene.uri(rng.random_range(0..POSTS));
        let adds = rng.random_bool(0.5);
        let mut arguments = vec!["bookmark", uri];
        if !adds {
            arguments.push("--remove");
        }
        if scene.replica(replica, &arguments)[0]["changed"] == true {
            let last = self.bookmarks.entry(uri.to_owned()).or_default();
            last.insert(replica, adds);
        }
    }

    /// Changes a list or the read marker on the server, as an app does.
    pub async fn on_server(&mut self, scene: &Scene, rng: &mut ChaCha8Rng) {
        self.number += 1;
        let title = format!("list {}", self.number);
        let body = json!({ "title": title });
        let known = rng.random_range(0..=self.lists.len());
        let known = self.lists.keys().nth(known).cloned();
        let path = |id: &str| format!("{}/api/v1/lists/{id}", scene.base());
        match (rng.random_range(0..4), known) {
            (0, _) => self.set_marker(scene).await,
            (1, Some(id)) => {
                scene.answered(scene.client.delete(path(&id))).await;
                self.lists.remove(&id);
            }
            (2, Some(id)) => {
                let change = with_json(scene.client.put(path(&id)), &body);
                scene.answered(change).await;
                self.lists.insert(id, title);
            }
            _ => {
                let made = scene.post("/api/v1/lists", &body).await;
                let id = made["id"].as_str().unwrap().to_owned();
                self.lists.insert(id, title);
            }
        }
    }

    async fn set_marker(&mut self, scene: &Scene) {
        self.marker = FIRST_PLACE + self.number;
        let body = json!({ "home": { "last_read_id": self.marker.to_string() } });
        for _ in 0..MAX_TRIES {
            let request = scene
                .client
                .post(format!("{}/api/v1/markers", scene.base()));
            let request = with_json(request, &body).bearer_auth(&scene.token);
            match request.send().await.unwrap().status().as_u16() {
                200 => return,
                // A replica was faster.
                409 => {}
                status => panic!("the marker was not set: {status}"),
            }
        }
        panic!("a replica was always faster");
    }

    /// Checks the objects that all replicas have in the end against the edits.
    pub fn assert_kept(&self, objects: &[Value], conflicts: &[Conflict]) {
        self.notes.assert_kept(&notes_of(objects), conflicts);
        let open = conflicts.iter().filter(|conflict| !conflict.is_resolved);
        open.for_each(|conflict| self.notes.assert_explained(conflict));

        let of_kind = |kind: &str| {
            let prefix = format!("{kind}:");
            objects
                .iter()
                .filter(move |object| object["key"].as_str().unwrap().starts_with(&prefix))
        };
        let mut titles: Vec<&str> = of_kind("list")
            .map(|list| list["value"]["title"].as_str().unwrap())
            .collect();
        let mut expected: Vec<&str> = self.lists.values().map(String::as_str).collect();
        titles.sort_unstable();
        expected.sort_unstable();
        assert_eq!(titles, expected);
        if self.marker > 0 {
            let marker: Vec<&Value> = of_kind("marker")
                .map(|marker| &marker["value"]["last_read"])
                .collect();
            assert_eq!(marker, [&json!(self.marker.to_string())]);
        }

        let keys: BTreeSet<&str> = of_kind("bookmark")
            .map(|bookmark| bookmark["key"].as_str().unwrap())
            .collect();
        for (uri, last) in &self.bookmarks {
            let key = format!("bookmark:{uri}");
            let is_listed = conflicts.iter().any(|conflict| conflict.key == key);
            let adds: BTreeSet<bool> = last.values().copied().collect();
            // If the last edits differ, the order in which they were sent decides.
            if let (false, [adds]) = (is_listed, adds.into_iter().collect::<Vec<_>>().as_slice()) {
                assert_eq!(keys.contains(&*key), *adds, "{key} {last:?}");
            }
        }
    }
}

/// The lines of the notes among some objects, by their keys.
fn notes_of(objects: &[Value]) -> BTreeMap<String, Vec<String>> {
    let objects = objects.iter();
    objects
        .map(|object| {
            let key = object["key"].as_str().unwrap().to_owned();
            (key, lines_of(&object["value"]))
        })
        .filter(|(key, _)| key.starts_with("note:"))
        .collect()
}

fn assert_changed(edited: &[Value]) {
    assert_eq!(edited[0]["changed"], true, "{edited:?}");
}

fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request
        .header("content-type", "application/json")
        .body(body.to_string())
}

/// Few posts, so that both replicas edit the same ones.
const POSTS: usize = 3;
/// Every other line is written, so that changes of two lines do not touch.
const EMPTY_NOTE: [&str; 5] = ["top", "above", "middle", "below", "bottom"];
const FIRST_PLACE: u64 = 1_000_000;
const MAX_TRIES: usize = 20;
