//! The form of texts in an index.

use driftline_core::predicate::{Folding, index_form};
use proptest::prelude::*;

use crate::{naive::in_form, random::Random};

fn contains(entry: &[char], word: &[char]) -> bool {
    entry.windows(word.len()).any(|window| window == word)
}

/// Checks that a word that matches in any way has a form that the text's form contains.
fn assert_found(word: &str, text: &str) -> bool {
    let forms = ["literal", "case", "kana"];
    let matches = forms.map(|form| {
        let word = in_form(form, word);
        !word.is_empty() && contains(&in_form(form, text), &word)
    });
    let is_matching = matches.contains(&true);
    if is_matching {
        let (word_form, text_form) = (index_form(word), index_form(text));
        assert!(text_form.contains(&word_form), "{word:?} in {text:?}");
    }
    is_matching
}

#[test]
fn each_character_has_one_form_before_and_after_folding() {
    for c in '\0'..=char::MAX {
        let form = index_form(&c.to_string());
        assert_eq!(index_form(&form), form, "{c:?}");
        for folding in [Folding::Case, Folding::Kana] {
            let folded = folding.fold(&c.to_string());
            assert_eq!(index_form(&folded), form, "{c:?}");
        }
    }
}

#[test]
fn a_part_of_a_hostile_text_is_found() {
    let mut random = Random::new(6);
    let mut found = 0;
    for _ in 0..100_000 {
        let text = random.text(8);
        let word = random.text(2);
        found += usize::from(assert_found(&word, &text));
    }
    assert!(found > 2_000, "{found}");
}

#[test]
fn a_part_of_a_folded_text_is_found() {
    let mut random = Random::new(7);
    for _ in 0..20_000 {
        let text: String = match random.is(50) {
            true => random.text(8),
            false => (0..4).map(|_| random.character()).collect(),
        };
        for form in ["literal", "case", "kana"] {
            let folded = in_form(form, &text);
            let start = random.below(folded.len() + 1);
            let end = start + random.below(folded.len() + 1 - start);
            let part: String = folded[start..end].iter().collect();
            assert_found(&part, &text);
        }
    }
}

#[test]
fn the_form_ignores_marks_case_width_and_kana() {
    for (text, form) in [
        ("Straße", "strasse"),
        ("ﬁn", "fin"),
        ("İstanbul", "istanbul"),
        ("ｶﾞﾗｽ", "からす"),
        ("E\u{323}\u{301}", "e"),
        ("ᾳ", "αι"),
        ("한", "\u{1112}\u{1161}\u{11ab}"),
        ("👍🏽", "👍🏽"),
        ("\u{301}", ""),
        ("100%_\"\0", "100%_\"\0"),
    ] {
        assert_eq!(index_form(text), form, "{text}");
    }
}

proptest! {
    #[test]
    fn the_form_of_a_part_is_a_part_of_the_form(
        (before, word, after) in (".{0,8}", ".{0,6}", ".{0,8}"),
    ) {
        let text = format!("{before}{word}{after}");
        prop_assert!(index_form(&text).contains(&index_form(&word)));
        prop_assert_eq!(index_form(&text), index_form(&before) + &index_form(&word) + &index_form(&after));
    }
}
