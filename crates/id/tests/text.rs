//! Text forms: boundaries, refusals, round trips.

use driftline_id::ParseIdError::{
    self, Character, Empty, LeadingZero, Length, NotUuidV7, Sign, TooLarge, UuidHyphens, UuidLength,
};
use driftline_id::{Layout, base32, decimal, hex, uuid};
use proptest::prelude::*;

#[test]
fn seconds_and_a_hash_are_a_time_and_the_first_bits_of_the_hash() {
    let text = "1700000000d41d8cd98f00b204e9800998ecf8427e";
    let raw = Layout::SNAC.parse(text).unwrap();
    assert_eq!(Layout::SNAC.time_ms(raw), 1_700_000_000_000);
    let first = Layout::SNAC.print(Layout::SNAC.smallest_at(1_700_000_000_999));
    assert_eq!(first, format!("1700000000{:032}", 0));
    assert!(*first < *text && *text < *Layout::SNAC.print(raw + 1));
    for bad in [
        "",
        "1700000000",
        "1700000000d41d8cd98f00b204e9800998ecf8427",
        "170000000xd41d8cd98f00b204e9800998ecf8427e",
        "9999999999d41d8cd98f00b204e9800998ecf8427e",
        "1700000000d41d8cd98f00b204e9800998ecf842é7",
    ] {
        assert!(Layout::SNAC.parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn boundaries_have_their_known_text() {
    assert_eq!(hex::print(u128::from(u64::MAX)), "0xffffffffffffffff");
    assert_eq!(hex::parse("0X20000000000001"), Ok((1 << 53) + 1));
    assert_eq!(hex::parse("8000000000000000"), Ok(1 << 63));
    assert_eq!(base32::print_sortable(0), "2222222222222");
    assert_eq!(base32::print_sortable(u64::MAX), "jzzzzzzzzzzzz");
    assert_eq!(
        base32::print_crockford(u128::MAX),
        "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
    );
    assert_eq!(
        base32::parse_crockford("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        Ok(0x0156_3E3A_B5D3_D676_4C61_EFB9_9302_BD5B)
    );
}

#[test]
fn twitter_ids_reach_the_whole_unsigned_range() {
    let max = "18446744073709551615";
    assert_eq!(Layout::TWITTER.parse(max), Ok(u128::from(u64::MAX)));
    assert_eq!(Layout::TWITTER.print(u128::from(u64::MAX)), max);
    assert_eq!(
        Layout::TWITTER.parse("18446744073709551616"),
        Err(TooLarge { bits: 64 })
    );
    assert_eq!(
        decimal::parse_u128("340282366920938463463374607431768211455"),
        Ok(u128::MAX)
    );
    assert_eq!(
        decimal::parse_u128("340282366920938463463374607431768211456"),
        Err(TooLarge { bits: 128 })
    );
}

#[test]
fn decimal_refuses_every_other_spelling() {
    let refused = |text| decimal::parse_u64(text).unwrap_err();
    assert_eq!(refused(""), Empty);
    assert_eq!(refused("-1"), Sign { sign: '-' });
    assert_eq!(refused("+1"), Sign { sign: '+' });
    assert_eq!(refused("007"), LeadingZero);
    assert_eq!(refused("00"), LeadingZero);
    assert_eq!(decimal::parse_u64("0"), Ok(0));
    for (text, character, position) in [
        (" 1", ' ', 1),
        ("1 ", ' ', 2),
        ("1_000", '_', 2),
        ("1e3", 'e', 2),
        ("12٣", '٣', 3),
    ] {
        assert_eq!(refused(text), character_error(character, position));
    }

    fn character_error(character: char, position: usize) -> ParseIdError {
        Character {
            character,
            position,
            expected: "the digits 0-9",
        }
    }
}

#[test]
fn hexadecimal_refuses_what_is_not_digits() {
    assert_eq!(hex::parse("0x"), Err(Empty));
    assert_eq!(hex::parse("0x+1"), Err(Sign { sign: '+' }));
    assert!(matches!(
        hex::parse("0x0x1"),
        Err(Character { character: 'x', .. })
    ));
    assert_eq!(
        hex::parse("100000000000000000000000000000000"),
        Err(TooLarge { bits: 128 })
    );
}

#[test]
fn tids_are_strict() {
    let refused = |text| Layout::TID.parse(text).unwrap_err();
    let (expected, found) = (13, 12);
    assert_eq!(refused("3jzfcijpj2z2"), Length { expected, found });
    assert!(matches!(
        refused("3jzfcijpj2z2A"),
        Character { position: 13, .. }
    ));
    assert!(matches!(
        refused("3jzfcijpj2z21"),
        Character { character: '1', .. }
    ));
    for (text, bits) in [
        ("zzzzzzzzzzzzz", 64),
        ("kjzfcijpj2z2a", 64),
        ("c222222222222", 63),
    ] {
        assert_eq!(refused(text), TooLarge { bits });
    }
    assert_eq!(Layout::TID.parse("bzzzzzzzzzzzz"), Ok((1 << 63) - 1));
}

#[test]
fn ulids_forgive_what_their_specification_does() {
    let parsed = |text| Layout::ULID.parse(text);
    let canonical = parsed("01ARZ3NDEKTSV4RRFFQ69G5F10");
    assert!(canonical.is_ok());
    for same in [
        "01arz3ndektsv4rrffq69g5f10",
        "O1ARZ3NDEKTSV4RRFFQ69G5FIO",
        "olarz3ndektsv4rrffq69g5flo",
    ] {
        assert_eq!(parsed(same), canonical);
    }
    assert_eq!(
        parsed("80000000000000000000000000"),
        Err(TooLarge { bits: 128 })
    );
    let letter = parsed("01ARZ3NDEKTSV4RRFFQ69G5FAU");
    assert!(matches!(letter, Err(Character { position: 26, .. })));
    let short = parsed("01ARZ3NDEKTSV4RRFFQ69G5FA");
    assert!(matches!(short, Err(Length { found: 25, .. })));
}

#[test]
fn uuids_need_their_shape_and_version() {
    let raw = Ok(0x017F_22E2_79B0_7CC3_98C4_DC0C_0C07_398F);
    for text in [
        "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
        "017f22e279b07cc398c4dc0c0c07398f",
    ] {
        assert_eq!(Layout::UUIDV7.parse(text), raw);
    }
    let refused = |text| Layout::UUIDV7.parse(text).unwrap_err();
    for (text, version, variant) in [
        ("919108f7-52d1-4320-9bac-f847db4148a8", 4, 2),
        ("017f22e2-79b0-7cc3-18c4-dc0c0c07398f", 7, 0),
    ] {
        assert_eq!(refused(text), NotUuidV7 { version, variant });
    }
    assert_eq!(refused("017f22e2"), UuidLength { found: 8 });
    assert_eq!(refused(""), Empty);
    for misplaced in [
        "017f22e27-9b0-7cc3-98c4-dc0c0c07398f",
        "017f22e2-79b0-7cc3-98c4-dc0c0c0739-f",
        "017f22e2-79b0-7cc398c4-dc0c0c073",
        "017f22e2079b007cc3098c40dc0c0c07398f",
    ] {
        assert_eq!(refused(misplaced), UuidHyphens);
    }
    let odd = refused("017f22e2-79b0-7cc3-98c4-dc0c0c07398g");
    assert!(matches!(
        odd,
        Character {
            character: 'g',
            position: 36,
            ..
        }
    ));
}

#[test]
fn any_form_prefers_the_layouts_own() {
    let digits = "2345672345672";
    let as_base32 = base32::parse_sortable(digits).map(u128::from);
    assert_eq!(Layout::TID.parse_any(digits), as_base32);
    assert_eq!(Layout::TID.parse_any("42"), Ok(42));
    assert_eq!(Layout::TWITTER.parse_any("0xff"), Ok(255));
    for (layout, text, bits) in [
        (Layout::TWITTER, "0x10000000000000000", 64),
        (Layout::TWITTER, "18446744073709551616", 64),
        (Layout::TID, "0x8000000000000000", 63),
    ] {
        assert_eq!(layout.parse_any(text), Err(TooLarge { bits }));
    }
    let (uuid, ulid) = (
        Layout::UUIDV7.parse_any("0xff"),
        Layout::ULID.parse_any("hello"),
    );
    assert!(matches!(uuid, Err(NotUuidV7 { .. })));
    assert!(matches!(ulid, Err(Length { .. })));
    assert_eq!(Layout::ULID.parse_any("42"), Ok(42));
}

#[test]
fn errors_say_what_to_do() {
    let message = |text| Layout::TWITTER.parse(text).unwrap_err().to_string();
    assert_eq!(message("-5"), "an ID has no sign; leave out the '-'");
    assert_eq!(
        message("12a"),
        "'a' at position 3 is not part of an ID here; use the digits 0-9"
    );
    assert_eq!(
        message("99999999999999999999"),
        "the ID does not fit 64 bits; check for extra digits, or choose another layout"
    );
}

#[test]
fn a_ulid_that_begins_as_hexadecimal_does_is_a_ulid() {
    let text = "0X000000000000000000000000";
    let raw = Layout::ULID.parse(text).unwrap();
    assert_eq!(Layout::ULID.parse_any(text), Ok(raw));
    assert_eq!(Layout::ULID.parse_any("0x10"), Ok(16));
    assert_eq!(Layout::ULID.parse_any("0X10"), Ok(16));
}

proptest! {
    #[test]
    fn numbers_round_trip(raw: u64, wide: u128) {
        prop_assert_eq!(decimal::parse_u64(&raw.to_string()), Ok(raw));
        prop_assert_eq!(decimal::parse_u128(&wide.to_string()), Ok(wide));
        prop_assert_eq!(hex::parse(&hex::print(wide)), Ok(wide));
        prop_assert_eq!(base32::parse_sortable(&base32::print_sortable(raw)), Ok(raw));
        prop_assert_eq!(base32::parse_crockford(&base32::print_crockford(wide)), Ok(wide));
        prop_assert_eq!(uuid::parse(&uuid::print(wide)), Ok(wide));
    }

    #[test]
    fn layouts_round_trip(layout in prop::sample::select(Layout::ALL), wide: u128) {
        let raw = layout.smallest_at(layout.time_ms(wide)) | (wide & 0xff);
        prop_assert_eq!(layout.parse(&layout.print(raw)), Ok(raw));
        prop_assert_eq!(layout.parse_any(&layout.print(raw)), Ok(raw));
        prop_assert_eq!(layout.parse_any(&hex::print(raw)), Ok(raw));
    }

    #[test]
    fn fixed_length_text_sorts_as_numbers_do(a: u64, b: u64, c: u128, d: u128) {
        let sortable = base32::print_sortable(a).cmp(&base32::print_sortable(b));
        prop_assert_eq!(sortable, a.cmp(&b));
        let crockford = base32::print_crockford(c).cmp(&base32::print_crockford(d));
        prop_assert_eq!(crockford, c.cmp(&d));
        prop_assert_eq!(uuid::print(c).cmp(&uuid::print(d)), c.cmp(&d));
        let seconds = Layout::SNAC.print(c).cmp(&Layout::SNAC.print(d));
        prop_assert_eq!(seconds, c.cmp(&d));
    }

    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = (hex::parse(&text), uuid::parse(&text));
        for layout in Layout::ALL {
            let _ = layout.parse_any(&text);
        }
    }

    #[test]
    fn accepted_text_is_canonical(digits in "[0-9]{1,40}") {
        if let Ok(raw) = decimal::parse_u128(&digits) {
            prop_assert_eq!(raw.to_string(), digits);
        }
    }
}
