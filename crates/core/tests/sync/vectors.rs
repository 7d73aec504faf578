//! The conformance vectors, which other clients read too.

use crate::vector::{expected, outcome, vectors};

#[test]
fn the_conformance_vectors_hold() {
    for vector in vectors() {
        assert_eq!(outcome(&vector), expected(&vector), "{}", vector["name"]);
    }
}
