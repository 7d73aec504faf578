//! `id decode`.
#![allow(clippy::unwrap_used)]

mod support;

use support::DataDir;

#[test]
fn an_id_is_taken_apart_in_every_form() {
    let data_dir = DataDir::new();
    for text in ["1050118621198921728", "0xe92c5527c95b000"] {
        let decoded = data_dir.json(&["id", "decode", text, "--layout", "twitter"]);
        assert_eq!(decoded["time_ms"], 1_539_202_764_211_i64, "{text}");
    }
    let uuid = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
    let decoded = data_dir.json(&["id", "decode", uuid]);
    assert_eq!(decoded[0]["layout"], "uuidv7");
    assert_eq!(decoded[0]["time_ms"], 1_645_557_742_000_i64);
    assert_eq!(decoded[0]["id"], uuid);
    assert_eq!(decoded[0]["fields"]["version"], "7");
}

#[test]
fn the_likely_layouts_come_first() {
    let data_dir = DataDir::new();
    let decoded = data_dir.json(&["id", "decode", "109348684123456789"]);
    let all = decoded.as_array().unwrap();
    let plausible: Vec<bool> = all
        .iter()
        .map(|reading| reading["plausible"].as_bool().unwrap())
        .collect();
    assert!(plausible[0], "{all:?}");
    assert!(plausible.is_sorted_by(|a, b| a >= b), "{all:?}");
    assert!(all.iter().any(|reading| reading["layout"] == "mastodon"));
}

#[test]
fn an_old_id_is_said_to_be_perhaps_older_than_its_layout() {
    let data_dir = DataDir::new();
    let decode = ["id", "decode", "15214161783", "--layout", "twitter"];
    let text = data_dir.run(&decode).stdout;
    assert!(text.contains("may be older than the layout"), "{text}");
    let decoded = data_dir.json(&["id", "decode", "15214161783"]);
    let twitter = decoded
        .as_array()
        .unwrap()
        .iter()
        .find(|reading| reading["layout"] == "twitter")
        .unwrap();
    assert_eq!(twitter["plausible"], false);
    assert!(twitter["remark"].as_str().unwrap().contains("sequential"));
}

#[test]
fn ids_of_a_time_and_to_poll_with_are_those_of_the_layout() {
    let data_dir = DataDir::new();
    let of = ["id", "of-time", "1539202764211", "--layout", "twitter"];
    let bounds = data_dir.json(&of);
    assert_eq!(bounds["smallest"], (250_367_789_554_u64 << 22).to_string());
    let largest = (250_367_789_554_u64 << 22) | ((1 << 22) - 1);
    assert_eq!(bounds["largest"], largest.to_string());
    let newest = "1050118621198921728";
    assert_eq!(
        data_dir.run(&["id", "since", newest]).stdout,
        format!("{newest}\n")
    );
    let at_once = ["id", "since", newest, "--retrieved", "1539202764211"];
    let since = (((250_367_789_554_u64 - 1_000) << 22) - 1).to_string();
    assert_eq!(data_dir.json(&at_once)["since_id"], since);
}

#[test]
fn new_ids_are_written_as_their_layout_does() {
    for (layout, length) in [
        ("twitter", 19),
        ("pulsate", 18),
        ("mastodon", 18),
        ("discord", 19),
        ("instagram", 19),
        ("sonyflake", 18),
        ("tid", 13),
    ] {
        let data_dir = DataDir::new();
        let next = ["id", "next", "-n", "3", "--layout", layout];
        let text = data_dir.run(&next).stdout;
        let ids: Vec<&str> = text.lines().collect();
        assert_eq!(ids.len(), 3, "{layout}");
        assert!(ids.is_sorted(), "{layout} sorts as text: {ids:?}");
        assert!(ids.iter().all(|id| id.len() == length), "{layout}: {ids:?}");
        let json = data_dir.json(&next);
        for id in json.as_array().unwrap() {
            let written = id["id"].as_str().unwrap();
            let decoded = data_dir.json(&["id", "decode", "--layout", layout, written]);
            assert_eq!(decoded["id"], id["id"], "{layout}");
            assert_eq!(decoded["decimal"], id["decimal"], "{layout}");
            assert!(ids.iter().all(|&before| before < written), "{layout}");
        }
    }
}

#[test]
fn invalid_ids_are_refused() {
    let data_dir = DataDir::new();
    for (arguments, word) in [
        (&["id", "decode", "hello!"][..], "no known layout"),
        (
            &["id", "decode", "12x", "--layout", "mastodon"],
            "'x' at position 3",
        ),
        (
            &["id", "decode", "12", "--layout", "snow"],
            "unknown layout",
        ),
    ] {
        let ended = data_dir.run(arguments);
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains(word), "{ended:?}");
    }
}
