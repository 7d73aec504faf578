//! IDs over HTTP, next to the mirror and Thrift, and their metrics.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::{
    service::{Service, ask, assert_rising, client, id, node_of},
    support::{DataDir, Running},
};

const JSON: [(&str, &str); 1] = [("accept", "application/json")];

fn ids(text: &str) -> Vec<u64> {
    let ids: Vec<String> = serde_json::from_str(text).unwrap();
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

/// `serve` with a Thrift port that was free a moment ago; again while another process takes it.
fn mirror_with_ids(data_dir: &DataDir) -> (Running, String, std::net::SocketAddr) {
    for _ in 0..10 {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let thrift = free.local_addr().unwrap();
        drop(free);
        let config = format!("[id]\nserve = true\nnode = 77\nlisten_thrift = \"{thrift}\"\n");
        data_dir.file("driftline.toml", &config);
        let mut server = data_dir.start(&["--json", "serve", "--listen", "127.0.0.1:0"]);
        let line = server.line();
        if let Ok(message) = serde_json::from_str::<Value>(&line) {
            return (
                server,
                message["listening"].as_str().unwrap().into(),
                thrift,
            );
        }
        assert_eq!(server.ended().code(), Some(1), "unexpected line {line:?}");
    }
    panic!("each port was taken by another process");
}

#[test]
fn the_mirror_gives_out_ids_where_it_is_configured() {
    let data_dir = DataDir::new();
    let (mut server, url, thrift) = mirror_with_ids(&data_dir);
    let mut thrift = client(thrift);
    let mut all = vec![id(&mut thrift)];
    let operator = format!("Bearer {}", data_dir.operator_token());
    let operator = ("authorization", operator.as_str());
    let more = format!("{url}/api/v1/ids?count=1000");
    let (status, text) = ask("POST", &more, &[JSON[0], operator]);
    assert_eq!(status, 200, "{text}");
    all.extend(ids(&text));
    all.push(id(&mut thrift));
    assert_eq!(all.len(), 1_002);
    assert_rising(&all);
    assert!(all.iter().all(|&id| node_of(id) == 77));

    let (status, text) = ask("GET", &format!("{url}/api/v1/ids"), &[operator]);
    assert_eq!(status, 200, "{text}");
    let state: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(state["fields"], json!({"datacenter": 2, "worker": 13}));
    // The mirror is as it was.
    assert_eq!(ask("GET", &format!("{url}/readyz"), &[]).0, 200);
    let (status, text) = ask(
        "GET",
        &format!("{url}/api/v1/timelines/public"),
        &[operator],
    );
    assert_eq!((status, text.as_str()), (200, "[]"));
    let (_, metrics) = ask("GET", &format!("{url}/metrics"), &[operator]);
    assert!(metrics.contains("driftline_id_issued_total"), "{metrics}");
    server.stop();

    data_dir.file("driftline.toml", "");
    let (_server, url) = data_dir.serve(&[]);
    let (status, _) = ask("POST", &format!("{url}/api/v1/ids"), &[operator]);
    assert_eq!(status, 404, "not where it is not configured");
}

/// The value of each series of a metric, with its labels.
fn series<'a>(metrics: &'a str, name: &str) -> Vec<(&'a str, u64)> {
    let lines = metrics.lines().filter_map(|line| line.strip_prefix(name));
    lines
        .filter_map(|line| line.strip_prefix('{')?.split_once("} "))
        .map(|(labels, value)| (labels, value.parse().unwrap()))
        .collect()
}

#[test]
fn ids_are_counted_by_agent_and_refusals_by_kind() {
    let data_dir = DataDir::new();
    let service = Service::with_http(&data_dir);
    let metrics = || ask("GET", &service.url("/metrics"), &[]).1;
    let mut client = service.client();
    for _ in 0..3 {
        client.call("get_id", Some("web")).unwrap();
    }
    for agent in ["", "no_agent", "two words"] {
        client.call("get_id", Some(agent)).unwrap_err();
    }
    let post = service.url("/api/v1/ids?count=5");
    assert_eq!(ask("POST", &post, &[("user-agent", "curl/8.5.0")]).0, 200);
    assert_eq!(ask("POST", &post, &[("user-agent", "~")]).0, 200);
    let text = metrics();
    let issued = series(&text, "driftline_id_issued_total");
    for expected in [
        ("agent=\"web\"", 3),
        ("agent=\"curl\"", 5),
        ("agent=\"http\"", 5),
    ] {
        assert!(issued.contains(&expected), "{expected:?} in {issued:?}");
    }
    assert_eq!(issued.len(), 3, "{issued:?}");
    let mut refused = series(&text, "driftline_id_refusals_total");
    refused.retain(|series| series.1 > 0);
    assert_eq!(refused, [("kind=\"user_agent\"", 3)]);

    for number in 0..150 {
        let agent = format!("agent-{number}");
        client.call("get_id", Some(&agent)).unwrap();
    }
    let text = metrics();
    let issued = series(&text, "driftline_id_issued_total");
    assert!(issued.len() <= 101, "{} series", issued.len());
    assert!(
        issued.len() > 90,
        "the first have a series each: {issued:?}"
    );
    let sum: u64 = issued.iter().map(|series| series.1).sum();
    assert_eq!(sum, 13 + 150, "no ID is left out");
    service.stop();
}
