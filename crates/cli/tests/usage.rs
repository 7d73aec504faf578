//! Exit statuses, messages and configuration.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use support::DataDir;

/// Runs it and checks the status and that one line says what is expected.
fn refused(data_dir: &DataDir, arguments: &[&str], status: i32, words: &[&str]) -> String {
    let ended = data_dir.run(arguments);
    assert_eq!(ended.status, status, "{arguments:?}: {ended:?}");
    assert_eq!(ended.stdout, "", "{arguments:?}: {ended:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "no {word:?} in {ended:?}");
    }
    ended.stderr
}

#[test]
fn a_wrong_command_line_is_2_and_help_is_0() {
    let data_dir = DataDir::new();
    assert_eq!(data_dir.run(&["--version"]).status, 0);
    assert_eq!(data_dir.run(&["source", "add", "--help"]).status, 0);
    refused(&data_dir, &["fly"], 2, &["fly"]);
    let serve = ["serve", "--listen", "nonsense"];
    refused(&data_dir, &serve, 2, &["nonsense"]);
    refused(
        &data_dir,
        &["source", "add", "https://a.example", "--every", "3"],
        2,
        &["--every", "500ms"],
    );
    for (timeline, words) in [
        ("nowhere", ["names no timeline", "tag:NAME"]),
        ("home", ["needs a token", "--token-env"]),
    ] {
        let add = ["source", "add", "https://a.example", "--timeline", timeline];
        let message = refused(&data_dir, &add, 2, &words);
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn commands_without_a_store_say_what_to_do() {
    let data_dir = DataDir::new();
    for command in [
        &["source", "list"][..],
        &["source", "verify", "gone"],
        &["export", "gone"],
    ] {
        refused(&data_dir, command, 10, &["there is no store", "--data"]);
    }
    assert!(!data_dir.data().exists(), "a question makes no folder");
    let add = ["source", "add", "https://a.example", "--no-check"];
    assert_eq!(data_dir.run(&add).status, 0);
    for command in [
        &["source", "verify", "gone"][..],
        &["source", "pause", "gone"],
        &["export", "gone"],
    ] {
        refused(&data_dir, command, 2, &["no source named \"gone\""]);
    }
    refused(
        &data_dir,
        &["source", "add", "https://a.example"],
        2,
        &["already", "--name"],
    );
}

#[test]
fn a_replica_takes_no_options_of_stores() {
    let data_dir = DataDir::new();
    for option in [&["--read-only"][..], &["--as", "ann"]] {
        let status = [&["replica", "status"][..], option].concat();
        refused(&data_dir, &status, 2, &[option[0], "leave it out"]);
    }
    let replica = data_dir.data().join("replica");
    let replica = replica.to_str().unwrap();
    let status = ["replica", "status"];
    refused(&data_dir, &status, 10, &["no replica", replica]);
}

#[test]
fn a_source_is_added_listed_paused_and_removed() {
    let data_dir = DataDir::new();
    let add = [
        "source",
        "add",
        "https://a.example/",
        "--no-check",
        "--every",
        "1m30s",
    ];
    let added = data_dir.json(&add);
    assert_eq!(added["name"], "a.example");
    let list = data_dir.json(&["source", "list"]);
    assert_eq!(list[0]["every_ms"], 90_000);
    assert_eq!(list[0]["paused"], false);
    let paused = data_dir.json(&["source", "pause", "a.example"]);
    assert_eq!(paused["changed"], true);
    let again = data_dir.run(&["source", "pause", "a.example"]);
    assert_eq!(again.stdout, "a.example is paused already\n");
    let table = data_dir.run(&["source", "list"]).stdout;
    assert!(table.contains("paused"), "{table}");
    let refused = data_dir.run(&["source", "remove", "a.example"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    for said in ["0 posts that no other source has", "--yes"] {
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    assert_eq!(
        data_dir.json(&["source", "list"]).as_array().unwrap().len(),
        1
    );
    let removed = data_dir.json(&["source", "remove", "a.example", "--yes"]);
    assert_eq!(removed["posts"], 0);
    assert_eq!(
        data_dir.json(&["source", "list"]).as_array().unwrap().len(),
        0
    );
}

#[test]
fn flags_are_stronger_than_the_environment_and_that_than_the_file() {
    let listen = |data_dir: &DataDir, arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.push("serve");
        // No address of this machine (RFC 5737).
        refused(data_dir, &all, 1, &["cannot be listened on"])
    };
    let data_dir = DataDir::new();
    let file = data_dir.file("my.toml", "[server]\nlisten = \"192.0.2.1:1\"\n");
    let message = listen(&data_dir, &["--config", &file]);
    assert!(message.contains("192.0.2.1:1 "), "{message}");

    let data_dir = data_dir.with("DRIFTLINE_SERVER__LISTEN", "192.0.2.1:2");
    let message = listen(&data_dir, &["--config", &file]);
    assert!(message.contains("192.0.2.1:2 "), "{message}");

    let flag = ["--config", &file, "serve", "--listen", "192.0.2.1:3"];
    let message = refused(&data_dir, &flag, 1, &["cannot be listened on"]);
    assert!(message.contains("192.0.2.1:3 "), "{message}");
}

#[test]
fn the_configuration_here_sets_what_sources_begin_with() {
    let data_dir = DataDir::new();
    let defaults = "[defaults]\nevery = \"1d\"\nbackfill = 100\noverlap = \"2s\"\n";
    data_dir.file("driftline.toml", defaults);
    data_dir.json(&["source", "add", "https://a.example", "--no-check"]);
    let add = [
        "source",
        "add",
        "https://b.example",
        "--no-check",
        "--every",
        "5s",
    ];
    data_dir.json(&add);
    let list = data_dir.json(&["source", "list"]);
    assert_eq!(list[0]["every_ms"], 86_400_000);
    assert_eq!(list[1]["every_ms"], 5_000);
}

#[test]
fn quiet_commands_print_errors_only() {
    let data_dir = DataDir::new();
    let list = ["--quiet", "source", "list"];
    refused(&data_dir, &list, 10, &["there is no store"]);
    let both = ["--quiet", "-v", "source", "list"];
    refused(&data_dir, &both, 2, &["--quiet"]);
    // Needs no configuration that is right.
    data_dir.file("driftline.toml", "[nowhere]\n");
    for command in [&["completions", "bash"][..], &["man"], &["--version"]] {
        let ended = data_dir.run(command);
        assert_eq!(ended.status, 0, "{command:?}: {ended:?}");
        assert!(ended.stdout.contains("driftline"), "{command:?}: {ended:?}");
    }
}

#[test]
fn variables_and_files_of_the_configuration_are_known() {
    let list = ["source", "list"];
    for (variable, meant) in [
        ("DRIFTLINE_DEFAULTS__EVRY", "DRIFTLINE_DEFAULTS__EVERY"),
        ("DRIFTLINE_SERVER_LISTEN", "DRIFTLINE_SERVER__LISTEN"),
    ] {
        let data_dir = DataDir::new().with(variable, "3s");
        let words = [variable, &format!("did you mean {meant:?}")];
        refused(&data_dir, &list, 2, &words);
    }
    // Not of the configuration, or named by it.
    let data_dir = DataDir::new()
        .with("DRIFTLINE_OPERATOR", "x")
        .with("DRIFTLINE_ID_NODE", "0123456789abcdef0123456789abcdef")
        .with("DRIFTLINE_SERVER__TOKEN_ENV", "DRIFTLINE_ID_NODE");
    assert_eq!(data_dir.run(&["config", "check"]).status, 0);
    let missing = ["--config", "missing.toml", "source", "list"];
    refused(&data_dir, &missing, 2, &["missing.toml"]);
}

#[test]
fn the_check_lists_every_fault_and_other_commands_the_first() {
    let data_dir = DataDir::new().with("DRIFTLINE_REFRESH__LEASE", "soon");
    let text = "[server]\nlissten = \"x\"\n[defaults]\nevery = 3\n";
    data_dir.file("driftline.toml", text);
    let faults = [
        "server.lissten",
        "defaults.every",
        "DRIFTLINE_REFRESH__LEASE",
    ];
    let message = refused(&data_dir, &["config", "check"], 2, &faults);
    assert_eq!(message.lines().count(), 3, "{message}");
    let words = ["`driftline config check` shows 2 more"];
    let message = refused(&data_dir, &["source", "list"], 2, &words);
    assert_eq!(message.lines().count(), 1, "{message}");
    let check = data_dir.run(&["--json", "config", "check"]);
    assert_eq!(check.status, 2, "{check:?}");
    let check: Value = serde_json::from_str(&check.stdout).unwrap();
    assert_eq!(check["faults"].as_array().unwrap().len(), 3, "{check}");

    // What only a start needs.
    let data_dir = DataDir::new();
    data_dir.file("driftline.toml", "[server]\ntoken_file = \"gone\"\n");
    refused(&data_dir, &["config", "check"], 2, &["gone"]);
    assert_eq!(data_dir.run(&["config", "show"]).status, 0);
    assert!(!data_dir.data().exists(), "a check makes no folder");
}

#[test]
fn values_are_shown_with_their_origins_and_without_secrets() {
    let data_dir = DataDir::new()
        .with("DRIFTLINE_UPSTREAM__READ_TIMEOUT", "7s")
        .with("DRIFTLINE_REFRESH__AGES__18M", "2m")
        .with("DRIFTLINE_STORE__DATABASE_URL", "postgres://me:hunter2@h/d");
    data_dir.file("driftline.toml", "[defaults]\nevery = \"9s\"\n");
    let shown = data_dir.json(&["--database-pool", "5", "config", "show"]);
    let row = |key: &str| {
        let rows = shown.as_array().unwrap();
        let row = rows.iter().find(|row| row["key"] == key).unwrap();
        (
            row["value"].clone(),
            row["from"].clone(),
            row["origin"].clone(),
        )
    };
    let expected = |value: Value, from: &str, origin: Value| (value, Value::from(from), origin);
    for (key, value, from, origin) in [
        (
            "defaults.every",
            "9s".into(),
            "file",
            "driftline.toml".into(),
        ),
        (
            "upstream.read_timeout",
            "7s".into(),
            "environment",
            "DRIFTLINE_UPSTREAM__READ_TIMEOUT".into(),
        ),
        (
            "refresh.ages.18m",
            "2m".into(),
            "environment",
            "DRIFTLINE_REFRESH__AGES__18M".into(),
        ),
        ("refresh.ages.1h", "10m".into(), "default", Value::Null),
        (
            "store.database_pool",
            5.into(),
            "flag",
            "--database-pool".into(),
        ),
        (
            "store.database_url",
            "postgres://me:***@h/d".into(),
            "environment",
            "DRIFTLINE_STORE__DATABASE_URL".into(),
        ),
        ("server.share", 1.into(), "default", Value::Null),
    ] {
        assert_eq!(row(key), expected(value, from, origin), "{key}");
    }
    let text = data_dir.run(&["config", "show"]);
    assert!(!text.stdout.contains("hunter2"), "{text:?}");
    assert!(!text.stderr.contains("hunter2"), "{text:?}");
}

#[test]
fn a_pool_of_too_few_or_too_many_connections_is_refused() {
    let data_dir = DataDir::new();
    for number in ["1", "1001"] {
        let file = data_dir.file("p.toml", &format!("[store]\ndatabase_pool = {number}\n"));
        for option in [["--database-pool", number], ["--config", &file]] {
            let line = [&option[..], &["source", "list"]].concat();
            let words = [&format!("pool of {number}"), "2 to 1000 connections"];
            refused(&data_dir, &line, 2, &words);
        }
    }
}

#[test]
fn messages_are_json_where_the_log_is() {
    let data_dir = DataDir::new();
    let url = "http://127.0.0.1:1";
    data_dir.json(&["source", "add", url, "--no-check", "--allow-private"]);
    let ended = data_dir.run(&["--log-format", "json", "mirror", url, "--for", "1s"]);
    assert_eq!(ended.status, 3, "{ended:?}");
    let messages = support::lines(&ended.stderr);
    let text = |at: usize| messages[at]["fields"]["message"].as_str().unwrap();
    assert!(text(0).starts_with("mirroring public of "), "{messages:?}");
    let last = messages.len() - 1;
    assert!(
        text(last).contains("nothing was ever fetched"),
        "{messages:?}"
    );
    assert_eq!(messages[last]["level"], "ERROR");
}

#[test]
fn a_database_urls_password_is_never_printed() {
    let secret = "hunter2hunter2";
    let url = format!("postgres://me:{secret}@127.0.0.1:1/none");
    let data_dir = DataDir::new();
    let flag = ["--database-url", &url, "-vv", "source", "list"];
    let message = refused(&data_dir, &flag, 1, &["127.0.0.1:1/none"]);
    assert!(!message.contains(secret), "{message}");
    let file = data_dir.file("d.toml", &format!("[store]\ndatabase_url = \"{url}\n"));
    let broken = refused(
        &data_dir,
        &["--config", &file, "source", "list"],
        2,
        &["TOML"],
    );
    assert!(!broken.contains(secret), "{broken}");
    let wrong = format!("mysql://me:{secret}@host/db");
    let flag = ["--database-url", &wrong, "source", "list"];
    let message = refused(&data_dir, &flag, 2, &["postgres://"]);
    assert!(!message.contains(secret), "{message}");
    let data_dir = data_dir.with("DRIFTLINE_STORE__DATABASE_URL", &url);
    let message = refused(&data_dir, &["source", "list"], 1, &["127.0.0.1:1/none"]);
    assert!(!message.contains(secret), "{message}");
}

/// The age table that is in force: below which age, ms, posts are refreshed how often, ms.
fn ages(data_dir: &DataDir) -> Vec<(i64, i64)> {
    data_dir.json(&["source", "add", "https://a.example", "--no-check"]);
    let status = data_dir.json(&["refresh", "status"]);
    let bands = status["instances"][0]["bands"].as_array().unwrap().iter();
    let pair = |band: &Value| Some((band["below_ms"].as_i64()?, band["every_ms"].as_i64()?));
    bands.map(|band| pair(band).unwrap()).collect()
}

#[test]
fn default_ages_change_their_own_interval_only_and_others_are_a_table_of_their_own() {
    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let defaults = [
        (18 * MINUTE, 3 * MINUTE),
        (HOUR, 10 * MINUTE),
        (DAY, 2 * HOUR),
        (7 * DAY, 12 * HOUR),
        (30 * DAY, 3 * DAY),
    ];
    let with = |at: usize, every_ms| {
        let mut bands = defaults;
        bands[at].1 = every_ms;
        bands.to_vec()
    };
    let of = |ages: &str| {
        let data_dir = DataDir::new();
        data_dir.file("driftline.toml", &format!("[refresh.ages]\n{ages}\n"));
        data_dir
    };
    assert_eq!(ages(&DataDir::new()), defaults);
    assert_eq!(ages(&of("\"18m\" = \"2m\"")), with(0, 2 * MINUTE));
    // The same age, written otherwise.
    assert_eq!(ages(&of("\"1h\" = \"5m\"")), with(1, 5 * MINUTE));
    assert_eq!(ages(&of("\"2h\" = \"5m\"")), [(2 * HOUR, 5 * MINUTE)]);
    let own = [(18 * MINUTE, MINUTE), (2 * HOUR, 5 * MINUTE)];
    assert_eq!(ages(&of("\"18m\" = \"1m\"\n\"2h\" = \"5m\"")), own);
    // The environment lies above the file, band by band.
    let variable = "DRIFTLINE_REFRESH__AGES__18M";
    let data_dir = DataDir::new().with(variable, "1m");
    assert_eq!(ages(&data_dir), with(0, MINUTE));
    let data_dir = of("\"18m\" = \"2m\"\n\"60m\" = \"5m\"").with(variable, "1m");
    let mut both = with(0, MINUTE);
    both[1].1 = 5 * MINUTE;
    assert_eq!(ages(&data_dir), both);
}

#[test]
fn errors_in_ages_quote_the_ages_as_written() {
    for (ages, words) in [
        // Below the default interval of the band before it.
        (
            "\"60m\" = \"2m\"",
            &["grow with age", "\"60m\"", "\"18m\"", "3m"][..],
        ),
        (
            "\"60m\" = \"5m\"\n\"1h\" = \"5m\"",
            &["refresh.ages.60m", "\"1h\"", "same age"],
        ),
        ("\"0s\" = \"5m\"", &["refresh.ages.0s", "the age is zero"]),
        (
            "\"2h\" = \"0s\"",
            &["refresh.ages.2h", "the interval is zero"],
        ),
        ("\"900000d\" = \"5m\"", &["900000d", "too long"]),
    ] {
        let data_dir = DataDir::new();
        data_dir.file("driftline.toml", &format!("[refresh.ages]\n{ages}\n"));
        refused(&data_dir, &["source", "add", "https://a.example"], 2, words);
    }
}
#[test]
fn an_invalid_refresh_setting_says_where_it_is_and_what_is_expected() {
    let add = ["source", "add", "https://a.example"];
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    for (line, command, words) in [
        (
            "policy = \"worth\"",
            &add[..],
            &["\"age\"", "\"value\""][..],
        ),
        ("policy = 3", &add, &["\"age\"", "\"value\""]),
        ("workers = -1", &add, &["a whole number, 0 or more"]),
        ("polling_share = \"half\"", &add, &["a number"]),
        ("credentials = \"one\"", &add, &["a list"]),
        ("off = 1", &add, &["true or false"]),
        ("ages = 3", &add, &["a table"]),
        ("skew = \"900000d\"", &add, &["too long"]),
        ("polling_share = 1.5", &add, &["between 0.0 and 1.0"]),
        ("workers = 65", &serve, &["between 1 and 64"]),
        ("lease = \"1s\"", &serve, &["at least 5s"]),
        ("buffer_ttl = \"30s\"", &serve, &["lease"]),
    ] {
        let (key, value) = line.split_once(" = ").unwrap();
        let data_dir = DataDir::new();
        data_dir.file("driftline.toml", &format!("[refresh]\n{line}\n"));
        let message = refused(&data_dir, command, 2, words);
        let name = format!("driftline.toml:2: \"refresh.{key}\"");
        assert!(message.contains(&name), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");

        let variable = format!("DRIFTLINE_REFRESH__{}", key.to_uppercase());
        let data_dir = DataDir::new().with(&variable, value);
        let message = refused(&data_dir, command, 2, words);
        let name = format!("the environment: \"{variable}\"");
        assert!(message.contains(&name), "{message}");
    }
    let variable = "DRIFTLINE_REFRESH__AGES__60M";
    let data_dir = DataDir::new().with(variable, "2m");
    refused(&data_dir, &add, 2, &["the environment", variable]);
}

#[test]
fn an_unknown_server_is_reported_with_the_known_ones() {
    let data_dir = DataDir::new();
    data_dir.json(&["source", "add", "https://a.example", "--no-check"]);
    let simulate = ["simulate", "--instance", "nope.example"];
    let words = ["no server \"nope.example\"", "https://a.example"];
    refused(&data_dir, &simulate, 2, &words);
}

#[test]
fn by_value_the_target_is_said_to_be_a_bound() {
    let data_dir = DataDir::new();
    data_dir.json(&["source", "add", "https://a.example", "--no-check"]);
    let words = |data_dir: &DataDir| data_dir.run(&["refresh", "status"]).stdout;
    assert!(!words(&data_dir).contains("by value"));
    data_dir.file("driftline.toml", "[refresh]\npolicy = \"value\"\n");
    assert!(words(&data_dir).contains("by value: TARGET is the interval by age"));
    let status = data_dir.json(&["refresh", "status"]);
    assert_eq!(status["instances"][0]["policy"], "value");
}

#[test]
fn a_source_that_cannot_work_is_refused_when_it_is_added() {
    let data_dir = DataDir::new();
    for (options, said) in [
        (&["--timeline", "tag:a b"][..], "invalid hashtag"),
        (&["--timeline", "tag:-"], "invalid hashtag"),
        (&["--timeline", "list:@ann"], "not an ID"),
        (&["--timeline", "account:@a nn"], "no account's name"),
        (
            &[
                "--kind",
                "x",
                "--token-env",
                "T",
                "--timeline",
                "account:@ann",
            ],
            "write account:ID",
        ),
        (&["--token-env", "A=B"], "environment variable"),
        (&["--token-file", ""], "is empty"),
        (&["--every", "0s"], "is zero"),
        (&["--every", "1ms"], "50ms or more"),
        (&["--every=-1s"], "invalid duration"),
        (&["--rung", "10m/0s"], "invalid rung"),
    ] {
        let add = ["source", "add", "http://127.0.0.1:1", "--no-check"];
        let refused = data_dir.run(&[&add[..], options].concat());
        assert_eq!(refused.status, 2, "{options:?}: {refused:?}");
        assert!(refused.stderr.contains(said), "{options:?}: {refused:?}");
    }
}

#[test]
fn a_new_file_is_compacted_without_consent() {
    let data_dir = DataDir::new();
    let add = ["source", "add", "http://127.0.0.1:1", "--no-check"];
    data_dir.json(&add);
    let compacted = data_dir.json(&["compact"]);
    assert_eq!(compacted["rewritten"], false, "{compacted}");
    let text = data_dir.run(&["compact"]).stdout;
    assert!(text.contains("nothing was free"), "{text}");
}
