//! The four methods of the service of 2010, and its refusals, as real clients see them.

use serde_json::{Value, json};

use crate::{
    python::{LIBRARIES, Library},
    service::{Service, assert_rising, now_us, time_ms},
    support::DataDir,
};

/// Each breaks the rule in its own way.
const NO_AGENTS: [&str; 9] = [
    "",
    "1abc",
    "-a",
    "a_b",
    "a b",
    "ä",
    "aä",
    "a\n",
    "Mozilla/5.0",
];

fn calls(library: Library, service: &Service) -> Value {
    serde_json::from_slice(&library.prints(service.thrift, NO_AGENTS)).unwrap()
}

fn ids(answers: &Value) -> Vec<u64> {
    let taken = answers["ids"].as_array().unwrap().iter();
    taken
        .chain([&answers["afterwards"]])
        .map(|id| id.as_str().unwrap().parse().unwrap())
        .collect()
}

#[test]
fn clients_of_2010_call_all_methods_and_are_refused_in_words() {
    let data_dir = DataDir::new();
    let service = Service::start(&data_dir, &["--node", "datacenter=3,worker=7"]);
    assert_eq!(service.node, 3 * 32 + 7);
    let mut all = Vec::new();
    for library in LIBRARIES {
        let before_ms = now_us() / 1_000;
        let answers = calls(library, &service);
        let after_ms = now_us() / 1_000;
        for header in ["strict", "lax"] {
            let answers = &answers[header];
            let case = format!("{library:?}, {header}: {answers:#}");
            assert_eq!(answers["worker"], 7, "{case}");
            assert_eq!(answers["datacenter"], 3, "{case}");
            let timestamp = answers["timestamp"].as_i64().unwrap();
            assert!((before_ms..=after_ms).contains(&timestamp), "{case}");

            let ids = ids(answers);
            for &id in &ids {
                assert_eq!(crate::service::node_of(id), service.node, "{case}");
                assert!((before_ms..=after_ms).contains(&time_ms(id)), "{case}");
            }
            all.extend(ids);

            let refused = answers["refused"].as_array().unwrap();
            assert_eq!(refused.len(), NO_AGENTS.len(), "{case}");
            for refusal in refused.iter().chain([&answers["unnamed"]]) {
                assert_eq!(refusal["type"], json!(6), "{case}");
                let message = refusal["message"].as_str().unwrap();
                assert!(message.contains("InvalidUserAgentError"), "{case}");
                assert!(message.contains("letters, digits and hyphens"), "{case}");
            }
            let unknown = &answers["unknown"];
            assert_eq!(unknown["type"], json!(1), "{case}");
            let message = unknown["message"].as_str().unwrap();
            assert!(message.contains("get_weather"), "{case}");
        }
    }
    assert_eq!(all.len(), 16);
    assert_rising(&all);
    service.stop();
}
