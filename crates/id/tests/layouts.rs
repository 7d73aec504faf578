//! Layouts: known IDs, bounds, composing and taking apart.

use driftline_id::{ComposeError, Field, FieldKind, Layout, TextForm, TimeError, TimeUnit};
use proptest::prelude::*;

const SIGNED_LIMIT: u128 = 1 << 63;

#[test]
fn known_ids_have_their_times() {
    let known = [
        (Layout::TWITTER, "1541815603606036480", 1_656_432_460_105),
        (Layout::TWITTER, "1900547158165840235", 1_741_960_727_622),
        (Layout::MASTODON, "109347703064222520", 1_668_513_535_525),
        (Layout::DISCORD, "175928847299117063", 1_462_015_105_796),
        (Layout::TID, "3l25zusnsfctk", 1_724_171_495_793),
        (Layout::TID, "3jzfcijpj2z2a", 1_688_137_381_887),
        (
            Layout::ULID,
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            1_469_922_850_259,
        ),
        (
            Layout::UUIDV7,
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
            1_645_557_742_000,
        ),
    ];
    for (layout, text, time_ms) in known {
        let raw = layout.parse(text).unwrap();
        assert_eq!(layout.time_ms(raw), time_ms, "{text}");
        assert_eq!(layout.print(raw), text);
        assert!(layout.contains(raw), "{text}");
    }
}

#[test]
fn known_ids_have_their_fields() {
    let fields = |layout: Layout, text: &str| {
        let decoded = layout.decode(layout.parse(text).unwrap());
        decoded
            .fields
            .iter()
            .map(|field| (field.name(), field.value))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        fields(Layout::TWITTER, "1541815603606036480"),
        [("datacenter", 11), ("worker", 26), ("sequence", 0)]
    );
    assert_eq!(
        fields(Layout::DISCORD, "175928847299117063"),
        [("worker", 1), ("process", 0), ("sequence", 7)]
    );
    assert_eq!(fields(Layout::TID, "3l25zusnsfctk"), [("clock_id", 816)]);
    assert_eq!(
        fields(Layout::UUIDV7, "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"),
        [
            ("version", 7),
            ("rand_a", 0xcc3),
            ("variant", 2),
            ("rand_b", 0x18c4_dc0c_0c07_398f)
        ]
    );
}

#[test]
fn microseconds_are_kept_where_the_layout_has_them() {
    let raw = Layout::TID.parse("3jzfcijpj2z2a").unwrap();
    assert_eq!(Layout::TID.time_us(raw), 1_688_137_381_887_007);
    assert_eq!(Layout::TID.compose_us(1_688_137_381_887_007, &[6]), Ok(raw));
    let raw = Layout::TWITTER.parse("1541815603606036480").unwrap();
    assert_eq!(Layout::TWITTER.time_us(raw), 1_656_432_460_105_000);
}

#[test]
fn layouts_end_and_pass_the_signed_limit_when_they_should() {
    let lives = [
        ("twitter", 3_487_858_230_208, None),
        ("pulsate", 6_039_041_711_103, Some(3_840_018_455_552)),
        ("mastodon", 281_474_976_710_655, Some(140_737_488_355_328)),
        ("discord", 5_818_116_911_103, Some(3_619_093_655_552)),
        ("instagram", 3_513_243_277_272, Some(2_413_731_649_497)),
        ("sonyflake", 6_907_087_738_879, None),
        ("tid", 9_007_199_254_740, None),
        ("takahe", 3_840_043_655_551, None),
        ("ulid", 281_474_976_710_655, None),
        ("uuidv7", 281_474_976_710_655, None),
        ("snac", 8_589_934_591_999, None),
    ];
    assert_eq!(lives.len(), Layout::ALL.len());
    for (name, end_of_life_ms, signed_limit_ms) in lives {
        let layout = Layout::named(name).unwrap();
        assert_eq!(layout.end_of_life_ms(), end_of_life_ms, "{name}");
        assert_eq!(layout.signed_limit_ms(), signed_limit_ms, "{name}");
        if let Some(limit_ms) = signed_limit_ms {
            assert_eq!(layout.smallest_at(limit_ms), SIGNED_LIMIT, "{name}");
            assert_eq!(layout.largest_at(limit_ms - 1), SIGNED_LIMIT - 1, "{name}");
        }
    }
}

#[test]
fn bounds_saturate_and_their_checked_forms_refuse() {
    for of in Layout::ALL {
        let (layout, epoch_ms, end_of_life_ms) = (of.name(), of.epoch_ms(), of.end_of_life_ms());
        let before = |unix_ms| TimeError::BeforeEpoch {
            unix_ms,
            epoch_ms,
            layout,
        };
        let past = |unix_ms| TimeError::PastEnd {
            unix_ms,
            end_of_life_ms,
            layout,
        };
        for (ms, bound, error) in [
            (i64::MIN, 0, before(i64::MIN)),
            (epoch_ms - 1, 0, before(epoch_ms - 1)),
            (end_of_life_ms + 1, of.max(), past(end_of_life_ms + 1)),
            (i64::MAX, of.max(), past(i64::MAX)),
        ] {
            assert_eq!([of.smallest_at(ms), of.largest_at(ms)], [bound; 2]);
            assert_eq!(of.checked_smallest_at(ms), Err(error));
            assert_eq!(of.checked_largest_at(ms), Err(error));
        }
        assert_eq!(of.checked_largest_at(end_of_life_ms), Ok(of.max()));
        let unit_ms = i64::from(of.unit().us().div_ceil(1_000));
        assert!((0..unit_ms).contains(&(end_of_life_ms - of.time_ms(of.max()))));
        assert!(of.contains(of.smallest_at(epoch_ms)) && of.contains(of.max()));
    }
}

#[test]
fn the_largest_ids_fill_their_layouts() {
    assert_eq!(Layout::TWITTER.max(), SIGNED_LIMIT - 1);
    assert_eq!(Layout::PULSATE.max(), u128::from(u64::MAX));
    assert_eq!(Layout::ULID.max(), u128::MAX);
    assert_eq!(
        Layout::UUIDV7.print(Layout::UUIDV7.max()),
        "ffffffff-ffff-7fff-bfff-ffffffffffff"
    );
    assert_eq!(
        Layout::UUIDV7.print(Layout::UUIDV7.smallest_at(1_645_557_742_000)),
        "017f22e2-79b0-7000-8000-000000000000"
    );
}

#[test]
fn bits_above_the_used_ones_count_as_time() {
    let used = Layout::TWITTER.time_ms(SIGNED_LIMIT - 1);
    assert_eq!(Layout::TWITTER.time_ms(SIGNED_LIMIT), used + 1);
    assert!(!Layout::TWITTER.contains(SIGNED_LIMIT));
    let beyond_width = (1 << 64) | 7;
    assert_eq!(
        Layout::TWITTER.decode(beyond_width),
        Layout::TWITTER.decode(7)
    );
}

#[test]
fn composing_refuses_what_does_not_fit() {
    let error = |values: &[u128]| {
        Layout::TWITTER
            .compose(1_700_000_000_000, values)
            .unwrap_err()
    };
    let (expected, found) = (3, 2);
    assert_eq!(error(&[1, 2]), ComposeError::FieldCount { expected, found });
    let (field, value, max) = ("worker", 32, 31);
    let too_large = ComposeError::FieldTooLarge { field, value, max };
    assert_eq!(error(&[1, 32, 0]), too_large);
    let text = "32 does not fit the field worker; give at most 31";
    assert_eq!(too_large.to_string(), text);
    let early = Layout::TWITTER.compose(0, &[0, 0, 0]);
    assert!(matches!(
        early,
        Err(ComposeError::Time(TimeError::BeforeEpoch { .. }))
    ));
    let late = Layout::TID.compose(Layout::TID.end_of_life_ms() + 1, &[0]);
    assert!(matches!(
        late,
        Err(ComposeError::Time(TimeError::PastEnd { .. }))
    ));
}

#[test]
fn an_epoch_can_be_chosen() {
    const OURS: Layout = Layout::INSTAGRAM.with_epoch(1_600_000_000_000);
    assert_eq!(OURS.time_ms(3 << 23), 1_600_000_000_003);
    assert_eq!(OURS.in_use_since_ms(), 1_600_000_000_000);
    assert_ne!(OURS, Layout::INSTAGRAM);
    let far = Layout::PULSATE.with_epoch(i64::MAX);
    assert_eq!(far.time_ms(u128::from(u64::MAX)), i64::MAX);
    assert_eq!(far.end_of_life_ms(), i64::MAX);
}

#[test]
fn layouts_describe_themselves() {
    assert_eq!(Layout::named("TWITTER"), Some(Layout::TWITTER));
    assert_eq!(Layout::named("flickr"), None);
    let tid = Layout::TID;
    assert_eq!(tid.unit(), TimeUnit::Microsecond);
    assert_eq!(tid.text_form(), TextForm::SortableBase32);
    assert_eq!((tid.time_bits(), tid.width_bits()), (53, 64));
    assert!(tid.sign_bit_unused() && !Layout::PULSATE.sign_bit_unused());
    assert_eq!(tid.fields()[0].kind(), FieldKind::Node);
    for layout in Layout::ALL {
        assert_eq!(Layout::named(layout.name()), Some(*layout));
        assert!(layout.in_use_since_ms() >= layout.epoch_ms());
    }
}

#[test]
fn decoded_ids_print() {
    let raw = Layout::DISCORD.parse("175928847299117063").unwrap();
    let decoded = Layout::DISCORD.decode(raw);
    assert_eq!(decoded.decimal(), "175928847299117063");
    assert_eq!(decoded.hex(), "0x271065ac1020007");
    assert_eq!(decoded.field("sequence"), Some(7));
    assert_eq!(decoded.field("shard"), None);
}

proptest! {
    #[test]
    fn composing_and_taking_apart_are_inverse(
        (layout, unix_ms, values) in layout_time_values()
    ) {
        let raw = layout.compose(unix_ms, &values).unwrap();
        let decoded = layout.decode(raw);
        let unit_ms = i64::from(layout.unit().us().div_ceil(1_000));
        let expected_ms = unix_ms - (unix_ms - layout.epoch_ms()) % unit_ms;
        prop_assert_eq!(decoded.time_ms, expected_ms);
        let free: Vec<u128> = decoded
            .fields
            .iter()
            .filter(|value| !value.field.is_fixed())
            .map(|value| value.value)
            .collect();
        prop_assert_eq!(free, values);
        prop_assert!(layout.contains(raw));
        prop_assert!(layout.checked_smallest_at(unix_ms).unwrap() <= raw);
        prop_assert!(raw <= layout.checked_largest_at(unix_ms).unwrap());
    }

    #[test]
    fn bounds_meet_without_overlap(
        (layout, unix_ms, _) in layout_time_values()
    ) {
        let below = layout.largest_at(unix_ms - 1);
        let first = layout.smallest_at(unix_ms);
        let same_unit = layout.smallest_at(unix_ms - 1) == first;
        prop_assert!(below < first || same_unit || first == 0);
        prop_assert!(first <= layout.largest_at(unix_ms));
    }

    #[test]
    fn every_id_lies_within_the_bounds_of_its_own_time(
        layout in any_layout(), seed: u128
    ) {
        let raw = seed & (u128::MAX >> (128 - layout.width_bits()));
        prop_assume!(layout.contains(raw));
        let time_ms = layout.time_ms(raw);
        prop_assert!(layout.checked_smallest_at(time_ms).unwrap() <= raw);
        prop_assert!(raw <= layout.checked_largest_at(time_ms).unwrap());
    }
}

fn any_layout() -> impl Strategy<Value = Layout> {
    prop::sample::select(Layout::ALL)
}

fn layout_time_values() -> impl Strategy<Value = (Layout, i64, Vec<u128>)> {
    any_layout().prop_flat_map(|layout| {
        let values: Vec<_> = layout
            .fields()
            .iter()
            .filter(|field| !field.is_fixed())
            .map(|field: &Field| 0..=field.max())
            .collect();
        let times = layout.epoch_ms()..=layout.end_of_life_ms();
        (Just(layout), times, values)
    })
}
