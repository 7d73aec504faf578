//! The condition for an index.

use driftline_core::predicate::{Candidates, Condition, Folding, Predicate, Term, index_form};

use crate::{
    naive::NaivePost,
    random::{NAMES, Random},
};

fn candidates(text: &str) -> Candidates {
    Predicate::parse(text, &NAMES).expect(text).candidates()
}

fn shown(candidates: &Candidates) -> String {
    let joined = |parts: &[Candidates], sign: &str| {
        let parts: Vec<String> = parts.iter().map(shown).collect();
        format!("({})", parts.join(sign))
    };
    match candidates {
        Candidates::Any => "any".to_owned(),
        Candidates::Term(term) => term.to_string(),
        Candidates::All(parts) => joined(parts, " & "),
        Candidates::AnyOf(parts) => joined(parts, " | "),
    }
}

#[test]
fn negations_require_nothing() {
    for (text, expected) in [
        ("cat", "cat"),
        ("-cat", "any"),
        ("cat -dog", "cat"),
        ("cat OR -dog", "any"),
        ("--cat", "cat"),
        ("-(-cat OR dog)", "cat"),
        ("-(-cat -dog)", "(cat | dog)"),
        ("cat XOR dog", "(cat | dog)"),
        ("-(cat XOR dog)", "any"),
        ("-(-cat XOR dog)", "(cat | dog)"),
        ("a (b OR c d) {}", "(a & (b | (c & d)))"),
        ("a (b (c OR d OR e))", "(a & b & (c | d | e))"),
        ("{#cat dog}", "(dog & tag:cat)"),
        ("{} OR cat", "any"),
    ] {
        assert_eq!(shown(&candidates(text)), expected, "{text}");
    }
}

#[test]
fn terms_without_an_index_may_be_left_out() {
    let is_indexed = |term: &Term| !matches!(term, Term::Condition(Condition::Has(_)));
    for (text, expected) in [
        ("cat has:media", "cat"),
        ("cat OR has:media", "any"),
        ("(cat has:media OR dog) lang:en", "((cat | dog) & lang:en)"),
        ("has:media", "any"),
    ] {
        let kept = candidates(text).only(&is_indexed);
        assert_eq!(shown(&kept), expected, "{text}");
    }
}

#[test]
fn ids_bound_the_places_of_matches() {
    let all = 0..=u64::MAX;
    for (text, expected) in [
        ("cat", all.clone()),
        ("id:7", 7..=7),
        ("cat id:>7 id:<=9", 8..=9),
        ("id:>=7 OR id:<3", all.clone()),
        ("id:7 OR id:>8 id:<9 OR id:5", 5..=7),
        ("-id:7", all),
        ("id:<7 cat OR id:<5", 0..=6),
    ] {
        assert_eq!(candidates(text).ids(), expected, "{text}");
    }
    for text in ["id:<0", "id:>18446744073709551615", "id:>7 id:<7"] {
        assert!(candidates(text).ids().is_empty(), "{text}");
    }
}

#[test]
fn whatever_matches_is_a_candidate() {
    let (mut matching, mut refused) = (0, 0);
    let mut random = Random::new(5);
    for _ in 0..4_000 {
        let predicate = random.predicate(6);
        let candidates = predicate.candidates();
        for _ in 0..5 {
            let post = NaivePost::new(random.post());
            let is_candidate = holds(&candidates, &post, predicate.folding());
            refused += usize::from(!is_candidate);
            if post.matches(&predicate) {
                matching += 1;
                assert!(is_candidate, "{predicate}: {:?}", post.post());
                assert!(candidates.ids().contains(&post.post().id), "{predicate}");
            }
        }
    }
    assert!(matching > 2_000 && refused > 2_000, "{matching} {refused}");
}

fn holds(candidates: &Candidates, post: &NaivePost, folding: Folding) -> bool {
    match candidates {
        Candidates::Any => true,
        Candidates::All(parts) => parts.iter().all(|part| holds(part, post, folding)),
        Candidates::AnyOf(parts) => parts.iter().any(|part| holds(part, post, folding)),
        Candidates::Term(Term::Word(word)) => {
            let entries = post.post().entries.iter().chain(&post.post().nickname);
            let word = index_form(word.text());
            let mut forms = entries.map(|entry| index_form(entry));
            forms.any(|entry| entry.contains(&word))
        }
        Candidates::Term(term) => post.meets(term, folding),
    }
}
