//! toot, a client for terminals.

use serde_json::{Value, json};

use crate::{Mirror, TOKEN, python::python};

/// toot with a configuration folder of its own.
struct Toot<'a>(&'a Mirror);

impl Toot<'_> {
    /// Takes the operator's token for that of a log-in, which Driftline has none of.
    fn log_in(&self) {
        let host = self.0.url.trim_start_matches("http://");
        let user = format!("operator@{host}");
        let config = json!({
            "apps": { host: {
                "instance": host,
                "base_url": self.0.url,
                "client_id": "",
                "client_secret": "",
            } },
            "users": { &user: {
                "instance": host,
                "username": "operator",
                "access_token": TOKEN,
            } },
            "active_user": user,
        });
        let folder = self.0.data_dir.folder().join("toot");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = python()
            .args(["-m", "toot"])
            .args(arguments)
            .env("XDG_CONFIG_HOME", self.0.data_dir.folder())
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        let said = self.run(&all);
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    }
}

fn ids(page: &Value) -> Vec<&str> {
    let statuses = page.as_array().unwrap().iter();
    statuses
        .map(|status| status["id"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn toot_reads_timelines_lists_and_posts() {
    let mirror = Mirror::start().await;
    let (toot, url) = (Toot(&mirror), &*mirror.url);
    let here = ["--instance", url];
    let public = |more: &[&str]| {
        let all = [&["timelines", "public"], &here[..], more].concat();
        toot.json(&all)
    };
    // Without a log-in.
    let old = toot.run(&[
        "timeline",
        "--public",
        "--once",
        "--count",
        "3",
        "--instance",
        url,
    ]);
    assert_eq!(old.matches("ID ").count(), 3, "{old}");
    assert_eq!(toot.json(&["instance", url])["title"], "Driftline");
    assert!(toot.run(&["instance", url]).contains("Driftline"));
    // With the operator's token in place of a log-in.
    toot.log_in();
    let page = public(&["--limit", "40"]);
    let newest = ids(&page);
    assert_eq!(newest.len(), 40);
    let below = public(&["--max-id", newest[9], "--limit", "5"]);
    assert_eq!(ids(&below), newest[10..15]);
    let above = public(&["--min-id", newest[9], "--limit", "5"]);
    assert_eq!(ids(&above), newest[4..9]);
    assert_eq!(public(&["--local"]), json!([]));
    assert_eq!(public(&["--only-media"]), json!([]));
    let lists = toot.json(&["lists", "list"]);
    assert_eq!(
        (&lists[0]["id"], &lists[0]["title"]),
        (&json!(mirror.list), &json!("sim"))
    );
    let on_list = [
        "timelines",
        "list",
        &mirror.list,
        "--max-id",
        newest[9],
        "--limit",
        "5",
    ];
    assert_eq!(ids(&toot.json(&on_list)), newest[10..15]);
    let status = toot.json(&["status", newest[0]]);
    assert_eq!(status["id"], newest[0]);
    assert!(toot.run(&["status", newest[0]]).contains(newest[0]));
    assert!(toot.run(&["thread", newest[0]]).contains(newest[0]));
}
