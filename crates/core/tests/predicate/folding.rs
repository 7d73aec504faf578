//! Folding, against its definition.

use driftline_core::predicate::Folding;
use proptest::prelude::*;

use crate::{naive::in_form, random::Random};

fn assert_defined(text: &str) {
    for (folding, form) in [(Folding::Case, "case"), (Folding::Kana, "kana")] {
        let defined: String = in_form(form, text).into_iter().collect();
        assert_eq!(folding.fold(text), defined, "{text:?}");
    }
}

#[test]
fn hostile_texts_are_folded_by_the_definition() {
    let mut random = Random::new(8);
    for _ in 0..50_000 {
        assert_defined(&random.text(8));
    }
}

#[test]
fn a_character_is_folded_by_the_definition_next_to_any_other() {
    let simple = [
        "A", "か", "カ", "猫", "한", "하", "Я", "Ω", "ώ", "É", "ø", "ก", "👍", " ", "　", "Ａ",
    ];
    let mut random = Random::new(9);
    for _ in 0..20_000 {
        let (c, d) = (random.character(), random.character());
        let (before, after) = (random.pick(&simple), random.pick(&simple));
        assert_defined(&format!("{before}{c}{d}{after}"));
    }
}

proptest! {
    #[test]
    fn every_text_is_folded_by_the_definition(text in "[ア-ヺか-ごｦ-ﾟA-Zé\u{301}\u{3099}]{0,8}.{0,12}") {
        assert_defined(&text);
    }
}
