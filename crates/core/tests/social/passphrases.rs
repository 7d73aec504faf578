//! Passphrases as they are hashed.

use driftline_core::social::{Passphrase, PassphraseError};
use proptest::prelude::*;
use secrecy::SecretString;

fn chosen(text: &str) -> Result<String, PassphraseError> {
    Passphrase::choose(&SecretString::from(text)).map(|of| of.expose().to_owned())
}

fn presented(text: &str) -> String {
    Passphrase::present(&SecretString::from(text))
        .expose()
        .to_owned()
}

#[test]
fn runs_of_whitespace_are_one_space() {
    let folded = "correct horse battery";
    for text in [
        "correct horse battery",
        "correct  horse   battery",
        "correct\thorse\nbattery",
        "correct\u{3000}horse\u{a0}\r\n\u{2028}battery",
        "ｃｏｒｒｅｃｔ　horse battery",
    ] {
        assert_eq!(chosen(text).as_deref(), Ok(folded), "{text:?}");
    }
    assert_eq!(chosen(" leading").as_deref(), Ok(" leading"));
}

#[test]
fn length_is_counted_after_normalisation() {
    assert_eq!(chosen("1234567"), Err(PassphraseError::Short));
    assert!(chosen("12345678").is_ok());
    assert_eq!(chosen("a          b"), Err(PassphraseError::Short));
    // Seven scalars as they are typed, eight once composed characters are counted: ㈱ is three.
    assert_eq!(chosen("㈱12345").as_deref(), Ok("(株)12345"));
    // Eight as they are typed, seven once they are composed.
    assert_eq!(chosen("123456e\u{301}"), Err(PassphraseError::Short));
    assert!(chosen(&"パ".repeat(8)).is_ok());
    assert!(chosen(&"a".repeat(512)).is_ok());
    assert_eq!(chosen(&"a".repeat(513)), Err(PassphraseError::Long));
    assert_eq!(chosen(&"a".repeat(1 << 20)), Err(PassphraseError::Long));
}

#[test]
fn what_is_too_long_to_be_normalised_matches_nothing() {
    let long = presented(&format!("12345678{}", " ".repeat(1 << 20)));
    assert_eq!(long, "  ", "no normalised text has two spaces in a row");
}

#[test]
fn a_passphrase_is_not_shown() {
    let passphrase = Passphrase::choose(&SecretString::from("correct horse")).unwrap();
    assert!(!format!("{passphrase:?}").contains("horse"));
    let error = Passphrase::choose(&SecretString::from("horse")).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("horse"));
}

/// Text with more whitespace, and more that NFKC changes, than chance has.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        any::<String>(),
        Just(" ".to_owned()),
        Just("\u{3000}\t".to_owned()),
        // Spacing marks decompose to a space and a mark.
        Just("\u{a8}".to_owned()),
        Just("\u{301}".to_owned()),
        Just("\u{338}".to_owned()),
        Just("\u{fdfa}".to_owned()),
        Just("ﾊﾟ㈱".to_owned()),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn normalisation_is_idempotent(text in text()) {
        let once = presented(&text);
        prop_assert_eq!(presented(&once), once.as_str());
        prop_assert!(!once.contains("  "));
        prop_assert!(once.chars().all(|of| of == ' ' || !of.is_whitespace()));
    }

    #[test]
    fn what_is_chosen_is_what_is_presented(text in text()) {
        let normal = presented(&text);
        match normal.chars().count() {
            ..8 => prop_assert_eq!(chosen(&text), Err(PassphraseError::Short)),
            8..=512 => prop_assert_eq!(chosen(&text), Ok(normal)),
            _ => prop_assert_eq!(chosen(&text), Err(PassphraseError::Long)),
        }
    }
}
