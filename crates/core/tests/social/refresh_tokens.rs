//! The refresh tokens of a log-in.

use driftline_core::social::{RefreshTokens, RefreshTokensError, TokenReused};
use proptest::prelude::*;

const NOW: i64 = 1_800_000_000_000;
const GRACE: i64 = RefreshTokens::GRACE_MS;

fn digest(number: u16) -> [u8; 32] {
    let mut digest = [0; 32];
    digest[..2].copy_from_slice(&number.to_be_bytes());
    digest
}

#[test]
fn a_token_works_once_and_again_within_the_grace() {
    let mut tokens = RefreshTokens::new(digest(0));
    tokens.exchange(&digest(0), digest(1), NOW).unwrap();
    let mut again = tokens.clone();
    let late = again.exchange(&digest(0), digest(2), NOW + GRACE - 1);
    assert_eq!(late, Ok(()));
    for now_ms in [NOW + GRACE, NOW - GRACE - 1] {
        let mut again = tokens.clone();
        let reused = again.exchange(&digest(0), digest(2), now_ms);
        assert_eq!(reused, Err(TokenReused), "{now_ms}");
    }
    let unknown = tokens.exchange(&digest(9), digest(2), NOW);
    assert_eq!(unknown, Err(TokenReused));
}

#[test]
fn each_token_of_one_grace_is_good_until_one_is_used_and_the_next_grace_is_over() {
    let mut tokens = RefreshTokens::new(digest(0));
    for (tab, after_ms) in [(1, 0), (2, 10), (3, GRACE - 1)] {
        let at = NOW + after_ms;
        assert_eq!(tokens.exchange(&digest(0), digest(tab), at), Ok(()));
    }
    let later = NOW + 900_000;
    for (tab, after_ms) in [(1, 0), (2, 10), (3, GRACE - 1)] {
        let given = tokens.exchange(&digest(tab), digest(tab + 10), later + after_ms);
        assert_eq!(given, Ok(()), "{tab}");
    }
    let mut stolen = tokens.clone();
    let late = stolen.exchange(&digest(2), digest(20), later + GRACE);
    assert_eq!(late, Err(TokenReused));
    for tab in [11, 12, 13] {
        let at = later + 900_000;
        assert_eq!(tokens.exchange(&digest(tab), digest(tab + 10), at), Ok(()));
    }
}

#[test]
fn a_client_in_a_loop_keeps_its_last_tokens() {
    let mut tokens = RefreshTokens::new(digest(0));
    for next in 1..=1_000 {
        assert_eq!(
            tokens.exchange(&digest(next - 1), digest(next), NOW),
            Ok(())
        );
        assert!(tokens.to_bytes().len() <= 40 * RefreshTokens::MAX);
    }
    assert_eq!(tokens.exchange(&digest(1_000), digest(2_000), NOW), Ok(()));
}

#[test]
fn tokens_are_read_as_they_were_stored() {
    let mut tokens = RefreshTokens::new(digest(0));
    tokens.exchange(&digest(0), digest(1), NOW).unwrap();
    let bytes = tokens.to_bytes();
    assert_eq!(RefreshTokens::from_bytes(&bytes), Ok(tokens));
    for bad in [&[][..], &bytes[1..], &[0; 41]] {
        assert_eq!(RefreshTokens::from_bytes(bad), Err(RefreshTokensError));
    }
}

proptest! {
    /// Three tabs refresh in rounds, in any order within one grace: none is logged out, and what is used a
    /// grace later ends the log-in.
    #[test]
    fn tabs_that_refresh_within_the_grace_stay_logged_in(
        rounds in prop::collection::vec(Just([0_usize, 1, 2]).prop_shuffle(), 2..6),
        gaps in prop::collection::vec(0..GRACE / 3, 18),
        repeats in prop::collection::vec(any::<bool>(), 18),
    ) {
        let mut tokens = RefreshTokens::new(digest(0));
        let (mut held, mut next, mut used) = ([0_u16; 3], 0, Vec::new());
        let mut now_ms = NOW;
        let mut turn = 0;
        for order in &rounds {
            for tab in order {
                let before = held[*tab];
                for _ in 0..1 + usize::from(repeats[turn]) {
                    next += 1;
                    prop_assert_eq!(tokens.exchange(&digest(before), digest(next), now_ms), Ok(()));
                }
                held[*tab] = next;
                used.push(before);
                now_ms += gaps[turn];
                turn += 1;
            }
            now_ms += 900_000;
        }
        for stolen in used {
            prop_assert!(tokens.clone().exchange(&digest(stolen), digest(60_000), now_ms).is_err());
        }
    }
}
