//! What a service makes sure of about its peers before it gives out IDs.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::TcpListener,
    process::{Child, Stdio},
};

use crate::{
    service::{Service, ask, id, run, serve},
    support::DataDir,
};

#[test]
fn a_service_does_not_start_next_to_a_peer_with_its_node() {
    let there = DataDir::new();
    let peer = Service::start(&there, &["--node", "4"]);
    let address = peer.thrift.to_string();
    let here = DataDir::new();
    let with_peer = |node| ["--node", node, "--peer", &address];
    let refused = run(&here, &serve(&with_peer("4")));
    assert_eq!(refused.status, 1, "{refused:?}");
    let expected = format!("the peer {address} has the node 4 too");
    assert!(refused.stderr.contains(&expected), "{refused:?}");
    assert!(
        refused.stderr.contains("--skip-sanity-check"),
        "{refused:?}"
    );
    let elsewhere = run(&here, &serve(&with_peer("datacenter=1,worker=5")));
    assert_eq!(elsewhere.status, 1, "{elsewhere:?}");
    assert!(
        elsewhere.stderr.contains("of the datacenter 0, not 1"),
        "{elsewhere:?}"
    );

    let service = Service::start(&here, &with_peer("5"));
    assert!(id(&mut service.client()) > 0);
    service.stop();
    let skipping = [&with_peer("4")[..], &["--skip-sanity-check"]].concat();
    let service = Service::start(&here, &skipping);
    assert_eq!(service.node, 4);
    assert!(id(&mut service.client()) > 0);
    service.stop();
    peer.stop();
}

#[test]
fn an_unreachable_peer_is_warned_of() {
    let data_dir = DataDir::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let arguments = serve(&["--listen-http", "127.0.0.1:0", "--peer", &address]);
    let child = data_dir
        .command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Killed(child);
    let mut line = String::new();
    let mut stdout = BufReader::new(child.0.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let started: serde_json::Value = serde_json::from_str(&line).unwrap();
    let url = format!("{}/api/v1/ids", started["http"].as_str().unwrap());
    let (_, state) = ask("GET", &url, &[]);
    assert!(state.contains("\"clock_offset_ms\":null"), "{state}");
    assert_eq!(ask("POST", &url, &[]).0, 200);
    child.0.kill().unwrap();
    let mut said = String::new();
    let mut stderr = child.0.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    let warned = |line: &str| line.contains("WARN") && line.contains(&address);
    assert!(said.lines().any(warned), "{said}");
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
