//! The states that are mailed to pending accounts.

use driftline_core::social::{PendingCheck, VerificationDigest, VerificationState};
use secrecy::{ExposeSecret as _, SecretString};

const LASTS: i64 = 7 * 24 * 3_600_000;

#[test]
fn a_state_is_good_for_seven_days() {
    let state = VerificationState::new([7; 32]);
    let other = VerificationState::new([8; 32]);
    let digest = state.digest();
    assert_eq!(VerificationDigest::LASTS_MS, LASTS);
    for (presented, age_ms, expected) in [
        (Some(&state), 0, PendingCheck::Verified),
        (Some(&state), LASTS - 1, PendingCheck::Verified),
        (Some(&state), LASTS, PendingCheck::Void),
        (Some(&other), 0, PendingCheck::Wrong),
        (Some(&other), LASTS, PendingCheck::Void),
        (None, 0, PendingCheck::Wrong),
    ] {
        let checked = digest.check(presented, age_ms);
        assert_eq!(checked, expected, "{age_ms} ms");
    }
}

#[test]
fn no_text_is_a_state_of_zeros() {
    let zeros = VerificationDigest([0; 32]);
    let digest = VerificationState::new([0; 32]).digest();
    assert_eq!(digest.check(None, 0), PendingCheck::Wrong);
    assert_ne!(digest, zeros, "a digest, not the state");
}

#[test]
fn the_text_of_a_state_can_be_read_and_nothing_else() {
    let mut bytes = [0; 32];
    for (at, byte) in (0..).zip(&mut bytes) {
        *byte = 7_u8.wrapping_mul(at);
    }
    let state = VerificationState::new(bytes);
    let text = state.text();
    assert_eq!(text.expose_secret().len(), 64);
    let read = VerificationState::parse(&text).unwrap();
    assert_eq!(read.digest(), state.digest());
    let long = format!("{}0", text.expose_secret());
    let accented = format!("é{}", &text.expose_secret()[2..]);
    for bad in [
        "",
        &text.expose_secret()[1..],
        &long,
        &accented,
        &"+f".repeat(32),
    ] {
        assert!(VerificationState::parse(&SecretString::from(bad)).is_none());
    }
    assert!(!format!("{state:?} {:?}", state.digest()).contains("07"));
}
