//! Command lines that make no sense.

use crate::{service::run, support::DataDir};

/// What is wrong about each is named, and the process starts nothing.
#[test]
fn wrong_flags_are_refused_in_words() {
    let place = DataDir::new();
    let refused = |arguments: &[&str], told: &str| {
        let all = [&["id", "serve"], arguments].concat();
        let ended = run(&place, &all);
        assert_eq!(ended.status, 2, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(told), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{arguments:?}");
    };
    let free = ["--listen-thrift", "127.0.0.1:0"];
    let with_port = |arguments: &[&'static str], told: &str| {
        refused(&[&free, arguments].concat(), told);
    };
    with_port(&["--layout", "ulid"], "128 bits are not generated here");
    with_port(&["--layout", "takahe"], "field random");
    with_port(&["--layout", "twittre"], "\"twittre\" is no layout");
    with_port(&["--node", "1024"], "at most 1023");
    with_port(
        &["--node", "datacenter=40,worker=1"],
        "40 does not fit the field datacenter",
    );
    with_port(
        &["--node", "datacenter=1,worker=1,rack=1"],
        "twitter has no node field \"rack\"",
    );
    with_port(&["--node", "here"], "\"here\" is no node");
    with_port(&["--node", "1", "--lease", "file"], "--lease");
    with_port(&["--listen-http", "0.0.0.0:0"], "--allow-remote");
    with_port(&["--wait", "long"], "\"long\" is no duration");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7609"] {
        refused(&["--listen-thrift", address], "--allow-remote");
        refused(&["--listen-thrift", address], address);
    }
    refused(&["--listen-thrift", "nonsense"], "\"nonsense\"");
    refused(&["--listen-thrift", "none"], "--listen-http");
    assert!(
        !place.data().join("ids").exists(),
        "no node was taken for any of them"
    );
}
