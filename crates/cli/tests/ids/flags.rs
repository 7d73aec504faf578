//! Command lines that make no sense.

use crate::{service::run, support::DataDir};

/// Each error is reported, and the process starts nothing.
#[test]
fn invalid_flags_are_refused_with_a_message() {
    let data_dir = DataDir::new();
    let refused = |arguments: &[&str], message: &str| {
        let all = [&["id", "serve"], arguments].concat();
        let ended = run(&data_dir, &all);
        assert_eq!(ended.status, 2, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(message), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{arguments:?}");
    };
    let free = ["--listen-thrift", "127.0.0.1:0"];
    let with_port = |arguments: &[&'static str], message: &str| {
        refused(&[&free, arguments].concat(), message);
    };
    with_port(&["--layout", "ulid"], "128 bits are not generated here");
    with_port(&["--layout", "takahe"], "field random");
    with_port(&["--layout", "twittre"], "unknown layout \"twittre\"");
    with_port(&["--node", "1024"], "at most 1023");
    with_port(
        &["--node", "datacenter=40,worker=1"],
        "40 does not fit the field datacenter",
    );
    with_port(
        &["--node", "datacenter=1,worker=1,rack=1"],
        "twitter has no node field \"rack\"; its node fields are: datacenter, worker",
    );
    with_port(&["--node", "here"], "invalid node \"here\"");
    with_port(&["--node", "1", "--lease", "file"], "--lease");
    with_port(&["--listen-http", "0.0.0.0:0"], "--allow-remote");
    with_port(&["--wait", "long"], "invalid duration \"long\"");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7609"] {
        refused(&["--listen-thrift", address], "--allow-remote");
        refused(&["--listen-thrift", address], address);
    }
    refused(&["--listen-thrift", "nonsense"], "\"nonsense\"");
    refused(&["--listen-thrift", "none"], "--listen-http");
    assert!(
        !data_dir.data().join("ids").exists(),
        "no node was taken for any of them"
    );
}
