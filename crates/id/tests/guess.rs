//! Guessing: which layouts a text may belong to, and which IDs may be older than theirs.

use driftline_id::{Layout, candidates};

fn may_predate(layout: &Layout, raw: u128) -> bool {
    layout.decode(raw).may_predate_layout()
}

#[test]
fn sequential_twitter_ids_are_remarked_on() {
    let last_sequential = 29_700_859_247;
    for raw in [20, 15_214_161_783, 1 << 34, last_sequential] {
        assert!(may_predate(&Layout::TWITTER, raw), "{raw}");
    }
    assert!(!may_predate(&Layout::TWITTER, 1_541_815_603_606_036_480));
}

#[test]
fn sequential_mastodon_ids_are_remarked_on() {
    assert!(may_predate(&Layout::MASTODON, 8_000_000));
    let day_before_ms = Layout::MASTODON.in_use_since_ms() - 1;
    let backdated = Layout::MASTODON.largest_at(day_before_ms);
    assert!(may_predate(&Layout::MASTODON, backdated));
    assert!(!may_predate(&Layout::MASTODON, backdated + 1));
}

#[test]
fn layouts_with_nothing_before_them_are_not_remarked_on() {
    let older = ["twitter", "mastodon"];
    for layout in Layout::ALL.iter().filter(|l| !older.contains(&l.name())) {
        assert!(!may_predate(layout, 0), "{}", layout.name());
    }
}

#[test]
fn decimal_text_may_be_of_any_decimal_layout() {
    assert_eq!(
        names("1541815603606036480"),
        [
            "twitter",
            "pulsate",
            "mastodon",
            "discord",
            "instagram",
            "sonyflake",
            "takahe"
        ]
    );
    assert_eq!(
        names("18446744073709551615"),
        ["pulsate", "mastodon", "discord", "instagram"]
    );
    let guesses = candidates("15214161783");
    assert_eq!(guesses[0].layout, Layout::TWITTER);
    assert_eq!(guesses[0].raw, 15_214_161_783);
    assert_eq!(guesses[0].time_ms, 1_288_834_978_284);
    assert!(guesses[0].may_predate_layout());
}

#[test]
fn other_text_tells_its_layout() {
    assert_eq!(names("3jzfcijpj2z2a"), ["tid"]);
    assert_eq!(names("01ARZ3NDEKTSV4RRFFQ69G5FAV"), ["ulid"]);
    assert_eq!(names("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"), ["uuidv7"]);
    assert_eq!(
        names("1700000000d41d8cd98f00b204e9800998ecf8427e"),
        ["snac"]
    );
    assert_eq!(
        names("0x017f22e279b07cc398c4dc0c0c07398f"),
        ["ulid", "uuidv7", "snac"]
    );
    assert_eq!(
        names("0x8000000000000000"),
        ["pulsate", "mastodon", "discord", "instagram"]
    );
    assert!(names("2345672345672").contains(&"tid"));
    assert!(names("2345672345672").contains(&"twitter"));
    for nothing in [
        "",
        "hello",
        "-5",
        "0x",
        "919108f7-52d1-4320-9bac-f847db4148a8",
    ] {
        assert_eq!(candidates(nothing), [], "{nothing}");
    }
}

fn names(text: &str) -> Vec<&'static str> {
    candidates(text)
        .iter()
        .map(|guess| guess.layout.name())
        .collect()
}
