//! Statuses in the forms that servers send, one of each server: what is stored of them and what is
//! shown. After them, all that Mastodon.py's authors recorded of real servers.
//!
//! The data of the former is our own; the members and their forms are those of the servers' documents and sources.
//! Each file also says which IDs are posts' and accounts', and which members belong to the reader.

mod flat;

use std::{collections::HashMap, fs, path::PathBuf, process::Command};

use driftline_core::{
    api::Api,
    post::{Post, Visibility},
    upstream_id::UpstreamId,
};
use driftline_mastodon::{
    Copier, RawObject, Referent, StatusHead, Template, read_account, read_status, text_of_json,
};
use flat::{Path, flatten, without};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

#[derive(Deserialize)]
struct Recorded {
    server: String,
    /// The upstream IDs in it.
    posts: Vec<UpstreamId>,
    accounts: Vec<UpstreamId>,
    /// The last parts of the paths of members that belong to the reader.
    viewer: Vec<String>,
    /// The items of lists that belong to the reader, JSON. They come last in their lists.
    #[serde(default)]
    viewer_items: Vec<String>,
    status: Box<RawValue>,
}

impl Recorded {
    /// Its members without those of the reader, by their paths in the order written.
    fn kept(&self) -> Vec<(Path, String)> {
        let members = without(flatten(self.status.get()), &self.viewer);
        let is_kept = |(_, json): &(Path, String)| !self.viewer_items.contains(json);
        members.into_iter().filter(is_kept).collect()
    }

    fn post(&self) -> Post {
        read_status(&self.status).unwrap_or_else(|error| panic!("{}: {error}", self.server))
    }

    /// The local ID that stands for one of the upstream's.
    fn local(&self, referent: Referent, id: &str) -> Option<u64> {
        let (ids, first) = match referent {
            Referent::Post => (&self.posts, 1000),
            Referent::Account => (&self.accounts, 2000),
        };
        let id = UpstreamId::from(id).stable();
        let at = ids.iter().position(|known| known.stable() == id)?;
        Some(first + at as u64)
    }

    /// The members of what is shown of it.
    fn shown(&self) -> Vec<(Path, String)> {
        flatten(self.written().get())
    }

    /// The entity that is shown of it.
    fn written(&self) -> Box<RawValue> {
        let post = self.post();
        let members = RawObject::parse(&post.raw).expect("an object");
        let id = |referent, id: &str| self.local(referent, id);
        let head = StatusHead {
            id: id(Referent::Post, post.id.as_str()).expect("its ID"),
            public_id: 1,
            account: id(Referent::Account, post.author.id.as_str()),
            created_at_ms: post.created_at_ms.expect("a time"),
            edited_at_ms: post.edited_at_ms,
            visibility: post.visibility,
            upstream_id: post.id.as_str(),
            uri: post.uri.as_deref(),
            url: post.url.as_deref(),
        };
        let copier = Copier {
            origin: "https://own.example",
            api: Api::Mastodon,
            own_host: None,
        };
        let (mut template, mut out) = (Template::default(), Vec::new());
        copier.status(&mut template, &members, &head);
        template.fill(&mut out, id, |_| None, |_, _| None);
        serde_json::from_slice(&out).expect("JSON")
    }

    /// What is shown in the place of a member's value.
    fn expected(&self, path: &Path, json: &str) -> String {
        let text = json.trim_matches('"');
        for referent in [Referent::Post, Referent::Account] {
            if let Some(id) = self.local(referent, text) {
                return format!("\"{id}\"");
            }
        }
        match path.last() {
            "acct" if !text.contains('@') => format!("\"{text}@own.example\""),
            "header" | "header_static" if text.is_empty() => {
                "\"https://own.example/headers/original/missing.png\"".to_owned()
            }
            _ => json.to_owned(),
        }
    }
}

/// Names the first difference only: statuses are long.
fn check_same<T: PartialEq + std::fmt::Debug>(server: &str, found: &[T], expected: &[T]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{server}");
    }
    assert_eq!(found.len(), expected.len(), "{server}");
}

fn recorded() -> Vec<Recorded> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let files = fs::read_dir(folder).expect("the folder");
    let read = |file: std::io::Result<fs::DirEntry>| {
        let text = fs::read_to_string(file.expect("a file").path()).expect("a text");
        serde_json::from_str(&text).expect("a recorded status")
    };
    files.map(read).collect()
}

#[test]
fn what_is_stored_is_what_came_but_for_the_readers_members() {
    let all = recorded();
    assert!(all.len() >= 14);
    for recorded in all {
        let post = recorded.post();
        check_same(&recorded.server, &flatten(&post.raw), &recorded.kept());
        assert_ne!(post.viewer, None, "{}", recorded.server);
    }
}

#[test]
fn what_is_shown_holds_every_member_in_its_order() {
    for recorded in recorded() {
        let (kept, shown) = (recorded.kept(), recorded.shown());
        let by_path: HashMap<_, _> = shown.iter().cloned().collect();
        for (path, json) in &kept {
            let found = by_path.get(path).map(String::as_str);
            let expected = recorded.expected(path, json);
            assert_eq!(found, Some(&*expected), "{}: {path:?}", recorded.server);
        }
        let came = |path: &&Path| kept.iter().any(|(other, _)| other == *path);
        let order: Vec<_> = shown.iter().map(|(path, _)| path).filter(came).collect();
        let expected: Vec<_> = kept.iter().map(|(path, _)| path).collect();
        check_same(&recorded.server, &order, &expected);
    }
}

#[test]
fn no_upstream_id_and_nothing_of_the_reader_is_shown() {
    for recorded in recorded() {
        let shown = recorded.shown();
        let without = without(shown.clone(), &recorded.viewer);
        check_same(&recorded.server, &without, &shown);
        for (path, json) in &shown {
            assert!(!recorded.viewer_items.contains(json), "{path:?} {json}");
            let ids = recorded.posts.iter().chain(&recorded.accounts);
            let leaks = ids.filter(|id| json.contains(id.as_str())).count();
            assert_eq!(leaks, 0, "{}: {path:?} {json}", recorded.server);
        }
    }
}

#[test]
fn the_text_of_what_is_stored_is_the_one_that_was_read() {
    for recorded in recorded() {
        let post = recorded.post();
        assert_eq!(text_of_json(&post.raw), post.text, "{}", recorded.server);
        assert!(post.text.entries().count() > 0, "{}", recorded.server);
    }
}

#[test]
fn what_a_status_names_is_known_when_it_is_read() {
    for recorded in recorded() {
        let post = recorded.post();
        let others = |ids: &[UpstreamId], own: &UpstreamId| -> Vec<UpstreamId> {
            let known = ids.iter().map(UpstreamId::stable);
            let mut others: Vec<_> = known.filter(|id| id != own).collect();
            others.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
            others
        };
        let (server, named) = (&recorded.server, &post.references);
        assert_eq!(named.posts, others(&recorded.posts, &post.id), "{server}");
        let accounts = others(&recorded.accounts, &post.author.id);
        assert_eq!(named.accounts, accounts, "{server}");
    }
}

/// An entity in a cassette.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entity {
    Status(Box<RawValue>),
    Account(Box<RawValue>),
}

/// The entities in the cassettes of Mastodon.py's sources.
fn cassettes() -> Vec<Entity> {
    let python = std::env::var("DRIFTLINE_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = Command::new(python)
        .args(["-c", include_str!("cassettes.py")])
        .output()
        .expect("Python starts");
    let errors = String::from_utf8_lossy(&script.stderr);
    assert!(script.status.success(), "{errors}");
    let lines = str::from_utf8(&script.stdout).expect("UTF-8").lines();
    lines
        .map(|line| serde_json::from_str(line).expect("an entity"))
        .collect()
}

/// Puts the reader's members back to the others.
fn merge(json: &mut Value, readers: Value) {
    match (json, readers) {
        (Value::Object(members), Value::Object(readers)) => {
            for (name, value) in readers {
                merge(members.entry(name).or_insert(Value::Null), value);
            }
        }
        // The reader's members of each item.
        (Value::Array(items), Value::Array(readers))
            if items.len() == readers.len() && readers.iter().all(Value::is_object) =>
        {
            for (item, readers) in items.iter_mut().zip(readers) {
                merge(item, readers);
            }
        }
        (json, readers) => *json = readers,
    }
}

#[test]
fn what_real_servers_answered_is_read_and_written_as_an_entity_again() {
    let (mut statuses, mut accounts) = (0, 0);
    let value = |json: &str| -> Value { serde_json::from_str(json).expect("JSON") };
    for entity in cassettes() {
        let status = match entity {
            Entity::Status(status) => status,
            Entity::Account(account) => {
                let read = read_account(&account).expect("an account");
                assert_eq!(value(account.get())["acct"], read.acct);
                accounts += 1;
                continue;
            }
        };
        let post = read_status(&status).unwrap_or_else(|error| panic!("{error}: {status}"));
        let mut whole = value(&post.raw);
        if let Some(viewer) = &post.viewer {
            merge(&mut whole, value(viewer));
        }
        assert_eq!(whole, value(status.get()));
        let with =
            |own: &UpstreamId, others: &[UpstreamId]| [std::slice::from_ref(own), others].concat();
        let recorded = Recorded {
            server: status.to_string(),
            posts: with(&post.id, &post.references.posts),
            accounts: with(&post.author.id, &post.references.accounts),
            viewer: Vec::new(),
            viewer_items: Vec::new(),
            status,
        };
        let paths = |members: Vec<(Path, String)>| -> Vec<Path> {
            members.into_iter().map(|(path, _)| path).collect()
        };
        let kept = paths(flatten(&post.raw));
        let mut shown = paths(recorded.shown());
        shown.retain(|path| kept.contains(path));
        // A boost of a private post is shown without it.
        let is_open = |boosted: &Post| {
            matches!(
                boosted.visibility,
                Visibility::Public | Visibility::Unlisted
            )
        };
        if !post.boost_of.as_deref().is_none_or(is_open) {
            continue;
        }
        check_same(&recorded.server, &shown, &kept);
        let again = read_status(&recorded.written()).expect("a status");
        assert_eq!(again.id.as_str(), "1000", "{}", recorded.server);
        // A count that an old server does not state is shown as 0.
        assert_eq!(again.counts.total(), post.counts.total());
        assert_eq!(
            (again.created_at_ms, again.visibility, again.text.joined),
            (post.created_at_ms, post.visibility, post.text.joined),
            "{}",
            recorded.server
        );
        statuses += 1;
    }
    assert!(
        statuses > 600 && accounts > 600,
        "{statuses} statuses and {accounts} accounts: `cargo xtask setup` brings them"
    );
}
