//! Names of accounts, nicknames and mail addresses.

use driftline_core::social::{
    AccountName, BIDI_CONTROLS, MailAddress, Nickname, NicknameError, without_bidi_controls,
};
use proptest::prelude::*;

#[test]
fn a_name_is_of_url_safe_ascii() {
    let longest = "a".repeat(64);
    for good in ["a", "Ann", "7", "a.b_c~d-e", "...", ".a", longest.as_str()] {
        assert_eq!(AccountName::new(good).unwrap().as_str(), good);
    }
    let long = "a".repeat(65);
    for bad in [
        "",
        ".",
        "..",
        "a b",
        "a@b",
        "a/b",
        "アン",
        "a%20",
        "a\n",
        "ａ",
        long.as_str(),
    ] {
        assert!(AccountName::new(bad).is_err(), "{bad:?}");
    }
    // The dotless i and the Kelvin sign fold to ASCII in Unicode; neither is a name.
    assert!(AccountName::new("\u{212a}").is_err() && AccountName::new("ı").is_err());
}

#[test]
fn an_address_is_one_that_mail_can_be_sent_to() {
    let of_length = |name: usize, host: usize| {
        let label = "b".repeat(63);
        let rest = "b".repeat(host - 3 * 64 - 8);
        format!(
            "{}@{label}.{label}.{label}.{rest}.example",
            "a".repeat(name)
        )
    };
    assert_eq!(of_length(64, 254).len(), 319);
    assert!(MailAddress::new(of_length(64, 254)).is_ok());
    assert!(MailAddress::new(of_length(65, 253)).is_err());
    assert!(MailAddress::new(of_length(64, 255)).is_err());
    for good in ["a@b.com", "Ann.Lee+x@mail.example.org", "用户@例え.jp"] {
        assert_eq!(MailAddress::new(good).unwrap().as_str(), good);
    }
    assert_eq!(
        MailAddress::new("Ann@Example.ORG").unwrap().key(),
        "ann@example.org"
    );
    let long = format!("{}@example.org", "a".repeat(400));
    for bad in [
        "",
        "a@b.c",
        "ann",
        "ann@localhost",
        "ann@[127.0.0.1]",
        "Ann <ann@example.org>",
        "\"a b\"@example.org",
        "ann@example.org\r\nBcc: all@example.org",
        "ann@@example.org",
        "ann\u{202e}@example.org",
        "ann@ex\u{2066}ample.org",
        "ann@exa mple.org",
        ".ann@example.org",
        "ann@example..org",
        long.as_str(),
    ] {
        assert!(MailAddress::new(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_nickname_turns_no_text_around() {
    let name = AccountName::new("ann").unwrap();
    assert_eq!(Nickname::default().or_name(&name), "ann");
    for good in ["Ann", "アン", "אנה", "👩‍👩‍👧", " ", "a\nb"] {
        assert_eq!(Nickname::new(good).unwrap().or_name(&name), good);
    }
    for control in BIDI_CONTROLS {
        let text = format!("a{control}b");
        assert_eq!(
            Nickname::new(text.as_str()),
            Err(NicknameError::BidiControl(control))
        );
        assert_eq!(Nickname::of_remote(&text).as_str(), "ab");
        assert_eq!(without_bidi_controls(&text), "ab");
    }
    assert_eq!(Nickname::new("a\0"), Err(NicknameError::Nul));
    assert_eq!(Nickname::of_remote("a\0").as_str(), "a\u{fffd}");
}

#[test]
fn a_nickname_is_measured_in_graphemes_and_bounded_in_bytes() {
    let family = "👩‍👩‍👧";
    let longest = family.repeat(200);
    assert!(longest.len() < Nickname::MAX_BYTES && Nickname::new(longest).is_ok());
    assert!(Nickname::new("a".repeat(256)).is_ok());
    assert_eq!(Nickname::new("a".repeat(257)), Err(NicknameError::Long));
    let tower = format!("a{}", "\u{301}".repeat(4_096));
    assert_eq!(Nickname::new(tower.as_str()), Err(NicknameError::Long));
    assert_eq!(Nickname::of_remote(&tower).as_str(), "");
    assert_eq!(Nickname::of_remote(&"a".repeat(300)).as_str().len(), 256);
}

proptest! {
    #[test]
    fn the_key_of_a_name_is_a_name_of_the_same_key(text in "[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,63}") {
        let name = AccountName::new(text.as_str()).unwrap();
        let key = AccountName::new(name.key()).unwrap();
        prop_assert_eq!(key.key(), name.key());
        prop_assert!(text.eq_ignore_ascii_case(key.as_str()));
        let upper = AccountName::new(text.to_ascii_uppercase()).unwrap();
        prop_assert_eq!(upper.key(), name.key());
    }

    #[test]
    fn any_text_is_a_name_or_refused(text in any::<String>()) {
        let is_name = (1..=64).contains(&text.len())
            && text.chars().all(|of| of.is_ascii_alphanumeric() || "._~-".contains(of))
            && text != "."
            && text != "..";
        prop_assert_eq!(AccountName::new(text).is_ok(), is_name);
    }

    #[test]
    fn what_a_remote_nickname_is_made_of_could_have_been_chosen(text in any::<String>()) {
        let remote = Nickname::of_remote(&text);
        prop_assert_eq!(Nickname::new(remote.as_str()), Ok(remote.clone()));
        prop_assert_eq!(Nickname::of_remote(remote.as_str()), remote);
        if let Ok(chosen) = Nickname::new(text.as_str()) {
            prop_assert_eq!(Nickname::of_remote(&text), chosen);
        }
    }
}
