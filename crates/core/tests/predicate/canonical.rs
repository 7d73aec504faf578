//! The canonical form and the negation normal form.

use driftline_core::predicate::{Folding, NameContext, Predicate, Tree};

use crate::{
    naive::NaivePost,
    random::{NAMES, Random},
};

fn canonical(text: &str) -> String {
    let names: &NameContext<'_> = &NAMES;
    let predicate = Predicate::parse(text, names).expect(text);
    predicate.canonical().to_string()
}

#[test]
fn spellings_of_one_predicate_have_one_canonical_form() {
    for (text, expected) in [
        ("b a", "a b"),
        ("b OR a OR b", "a OR b"),
        ("a (b (c a))", "a b c"),
        ("a XOR (c XOR b) XOR a", "a XOR a XOR b XOR c"),
        ("---a", "-a"),
        ("{from:ann cat}", "author:ann@a.example cat"),
        ("a {} {}", "a"),
        ("{} {}", "{}"),
        ("a OR -{}", "a"),
        ("--(a b) c", "a b c"),
        // A tree with `is:boost` stays one.
        ("{} OR is:boost", "is:boost OR {}"),
        ("is:boost OR is:boost", "is:boost"),
    ] {
        assert_eq!(canonical(text), expected, "{text}");
    }
}

#[test]
fn the_canonical_form_is_equivalent_and_canonical() {
    let mut random = Random::new(3);
    for _ in 0..300 {
        let predicate = random.predicate(10);
        let canonical = predicate.canonical();
        assert_eq!(canonical.canonical(), canonical, "{predicate}");
        let text = canonical.to_string();
        assert!(text.len() <= predicate.to_string().len(), "{predicate}");
        assert!(Predicate::new(canonical.tree().clone(), Folding::Case).is_ok());
        assert_equivalent(&mut random, &predicate, &canonical);
    }
}

#[test]
fn the_normal_form_is_equivalent_and_negates_atoms_only() {
    let mut random = Random::new(4);
    for _ in 0..300 {
        let predicate = random.predicate(10);
        let tree = predicate.tree().negation_normal_form();
        assert!(is_normal(&tree), "{tree}");
        assert_eq!(
            tree.propositions().len(),
            predicate.tree().propositions().len()
        );
        let normal = Predicate::new(tree, predicate.folding()).expect("a small tree");
        assert_equivalent(&mut random, &predicate, &normal);
    }
}

fn is_normal(tree: &Tree) -> bool {
    match tree {
        Tree::Atom(_) => true,
        Tree::Not(operand) => matches!(**operand, Tree::Atom(_)),
        Tree::And(left, right) | Tree::Or(left, right) | Tree::Xor(left, right) => {
            is_normal(left) && is_normal(right)
        }
    }
}

fn assert_equivalent(random: &mut Random, one: &Predicate, other: &Predicate) {
    for _ in 0..30 {
        let post = NaivePost::new(random.post());
        assert_eq!(
            post.matches(one),
            post.matches(other),
            "{one}\n{other}\n{:?}",
            post.post()
        );
    }
}
