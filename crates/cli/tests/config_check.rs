//! `config check` lists every fault, with its line.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use support::DataDir;

#[test]
fn every_fault_of_every_kind_is_listed_with_its_line() {
    const SECRET: &str = "hunter2hunter2";
    let text = [
        "[server]",
        "lissten = \"hunter2hunter2\"",
        "public_url = \"nowhere\"",
        "share = 100000",
        "maintainer_mail = \"nobody\"",
        "trusted_proxies = [\"10.0.0.2\", \"proxy.example\"]",
        "[upstream]",
        "read_timeout = \"0s\"",
        "connect_timeout = \"0s\"",
        "[weather]",
        "rain = true",
        "[refresh.ages]",
        "\"18m\" = \"soon\"",
        "\"1h\" = 3",
        "[log]",
        "level = \"warning\"",
        "[mail]",
        "passphrase_env = \"NO_SUCH_VARIABLE\"",
        "from = \"hunter2hunter2",
        "[defaults]",
        "every =",
        "overlap = 7",
    ];
    let data_dir = DataDir::new().with("DRIFTLINE_REFRESH__WORKERS", "65");
    data_dir.file("driftline.toml", &text.join("\n"));
    let expected = [
        (2, "server.listen"),
        (3, "server.public_url"),
        (4, "server.share"),
        (5, "server.maintainer_mail"),
        (6, "server.trusted_proxies"),
        (8, "upstream.read_timeout"),
        (9, "upstream.connect_timeout"),
        (10, "weather"),
        (13, "refresh.ages.18m"),
        (14, "refresh.ages.1h"),
        (16, "log.level"),
        (18, "NO_SUCH_VARIABLE"),
        (19, "not TOML"),
        (21, "not TOML"),
        (22, "defaults.overlap"),
    ];
    let checked = data_dir.run(&["config", "check"]);
    assert_eq!(checked.status, 2, "{checked:?}");
    let lines: Vec<&str> = checked.stderr.lines().collect();
    for (line, word) in expected {
        let place = format!("driftline.toml:{line}:");
        let is_it = |text: &&&str| text.contains(&place) && text.contains(word);
        let found = lines.iter().filter(is_it).count();
        assert_eq!(found, 1, "{place} {word}: {}", checked.stderr);
    }
    assert!(
        checked
            .stderr
            .contains("\"DRIFTLINE_REFRESH__WORKERS\" must be"),
        "{checked:?}"
    );
    assert_eq!(lines.len(), expected.len() + 1, "{}", checked.stderr);
    assert!(!checked.stderr.contains(SECRET), "{checked:?}");

    let checked = data_dir.run(&["--json", "config", "check"]);
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    let faults = checked["faults"].as_array().unwrap();
    assert_eq!(faults.len(), lines.len(), "{checked}");
    assert!(!data_dir.data().exists(), "a check makes no folder");
}

#[test]
fn a_valid_file_has_none() {
    let data_dir = DataDir::new();
    let text = "[server]\nlisten = \"127.0.0.1:0\"\n[refresh]\nlease = \"6s\"\nbuffer_ttl = \"1s\"\n[refresh.ages]\n\"18m\" = \"2m\"\n";
    data_dir.file("driftline.toml", text);
    let checked = data_dir.run(&["config", "check"]);
    assert_eq!(checked.status, 0, "{checked:?}");
    assert!(checked.stdout.contains("driftline.toml"), "{checked:?}");
}
