//! What servers say of themselves.

use driftline_core::social::{BIDI_CONTROLS, InstanceInfo, InstanceSelfDescription};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation as _;

fn info(said: InstanceSelfDescription) -> InstanceInfo {
    said.into()
}

#[test]
fn what_would_turn_text_or_a_terminal_is_taken_out() {
    let said = InstanceSelfDescription {
        name: " A\u{202e}\u{1b}[2JB\r\nC\0 ".into(),
        description: "one\ntwo\u{7}\u{2066}".into(),
        version: "4.3.0\n".into(),
        ..InstanceSelfDescription::default()
    };
    let info = info(said);
    assert_eq!(info.name(), "A [2JB  C");
    assert_eq!(info.description(), "one\ntwo");
    assert_eq!(info.version(), "4.3.0");
}

#[test]
fn what_is_too_long_is_cut_between_graphemes() {
    let accented = "e\u{301}".repeat(1_000);
    let said = InstanceSelfDescription {
        name: accented.clone(),
        // One grapheme without an end.
        description: format!("a{}", "\u{301}".repeat(1_000_000)),
        extensions: (0..1_000).map(|n| format!("x{}", n / 2)).collect(),
        maintainer_name: accented,
        ..InstanceSelfDescription::default()
    };
    let info = info(said);
    assert_eq!(info.name(), "e\u{301}".repeat(256));
    assert_eq!(info.maintainer_name(), info.name());
    assert!(info.description().len() <= 65_536 * 2);
    assert_eq!(info.extensions().len(), 64);
    assert_eq!(info.extensions()[63], "x63", "each once");
}

proptest! {
    #[test]
    fn whatever_a_server_says_is_bounded_and_stays_as_it_is_read_again(
        texts in proptest::collection::vec(any::<String>(), 5),
        extensions in proptest::collection::vec(any::<String>(), 0..4),
    ) {
        let said = InstanceSelfDescription {
            name: texts[0].clone(),
            description: texts[1].clone(),
            version: texts[2].clone(),
            software_name: texts[3].clone(),
            extensions,
            maintainer_name: texts[4].clone(),
        };
        let info = info(said);
        let mut all: Vec<&str> = info.extensions().iter().map(String::as_str).collect();
        all.extend([info.name(), info.version(), info.software_name(), info.maintainer_name()]);
        for text in all {
            let is_allowed = |c: char| !c.is_control() && !BIDI_CONTROLS.contains(&c);
            prop_assert!(text.chars().all(is_allowed));
            prop_assert!(text.graphemes(true).count() <= InstanceInfo::MAX_NAME_GRAPHEMES);
        }
        let json = serde_json::to_string(&info).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<InstanceInfo>(&json).expect("the same"), info);
    }
}
