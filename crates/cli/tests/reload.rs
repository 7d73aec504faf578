//! SIGHUP to the real binary.
#![allow(clippy::unwrap_used)]

mod support;

use support::{DataDir, get, wait_for};

#[test]
fn a_hangup_reads_the_configuration_again_and_ends_nothing() {
    let data_dir = DataDir::new();
    let write = |text: &str| {
        data_dir.file("driftline.toml", text);
    };
    let hang_up = |server: &support::Running, said: &str| {
        let before = data_dir.log().matches(said).count();
        server.signal("HUP");
        wait_for(said, || data_dir.log().matches(said).count() > before);
    };
    write("[server]\nshare = 1\n");
    let (mut server, url) = data_dir.serve(&[]);
    hang_up(&server, "SIGHUP: the configuration was read again");
    assert!(
        !data_dir.log().contains("need a restart"),
        "{}",
        data_dir.log()
    );

    write("[server]\nshar = 2\n[defaults]\nevery = 3\n");
    hang_up(&server, "the old configuration stays in use");
    wait_for("each fault is logged", || {
        let log = data_dir.log();
        log.contains("server.share") && log.contains("defaults.every")
    });

    write("[server]\nshare = 2\n[store]\ndatabase_pool = 9\n");
    hang_up(&server, "need a restart: server.share, store.database_pool");
    assert_eq!(get(&format!("{url}/livez")).0, 200);
    assert!(!server.has_ended());
    server.stop();
}

#[test]
fn the_level_of_the_log_changes_while_it_runs() {
    let data_dir = DataDir::new();
    data_dir.file("driftline.toml", "[log]\nlevel = \"error\"\n");
    let (mut server, _) = data_dir.serve(&["--log-format", "json"]);
    data_dir.file("driftline.toml", "[log]\nlevel = \"info\"\n");
    server.signal("HUP");
    wait_for("warnings are logged", || {
        data_dir.log().contains("the configuration was read again")
    });
    let log = data_dir.log();
    let line = log.lines().find(|line| line.contains("SIGHUP")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["level"], "WARN", "{line}");
    server.stop();
}
