//! The JSON form.

use driftline_core::predicate::{
    Folding, JsonError, MAX_DEPTH, MAX_JSON_BYTES, MAX_TERMS, MAX_TEXT_BYTES, Predicate,
};
use serde_json::{Value, json};

use crate::random::{NAMES, Random};

fn read(json: &Value) -> Result<Predicate, String> {
    Predicate::from_json(&json.to_string()).map_err(|error| error.to_string())
}

fn read_tree(tree: &Value) -> Result<String, String> {
    read(&json!({"folding": 2, "tree": tree})).map(|predicate| predicate.to_string())
}

#[test]
fn a_predicate_is_read_as_it_is_written() {
    let mut random = Random::new(2);
    for _ in 0..5_000 {
        let predicate = random.predicate(12);
        let json = serde_json::to_string(&predicate).unwrap();
        assert_eq!(Predicate::from_json(&json).unwrap(), predicate, "{json}");
    }
}

#[test]
fn json_has_the_seed_s_tree_and_propositions() {
    let text =
        "{author:ann@a.example#5 instance:a.example =cat} (a OR b OR word:c) -has:media XOR {}";
    let predicate = Predicate::parse(text, &NAMES).unwrap();
    let expected = json!({"folding": 2, "tree": {"xor": [
        {"and": [
            {"atom": {
                "id_mask": {"acct": "ann@a.example", "id": "5"},
                "belonging": "a.example",
                "match_word": "cat",
            }},
            {"or": [
                {"atom": {"match_word": {"folded": "a"}}},
                {"atom": {"match_word": {"folded": "b"}}},
                {"atom": {"match_word": {"whole": "c"}}},
            ]},
            {"not": {"atom": {"has": "media"}}},
        ]},
        {"atom": {}},
    ]}});
    assert_eq!(serde_json::to_value(&predicate).unwrap(), expected);
    assert_eq!(read(&expected), Ok(predicate));
}

#[test]
fn a_connective_has_any_number_of_operands_from_left_to_right() {
    let [a, b, c] = ["a", "b", "c"].map(|text| json!({"atom": {"match_word": text}}));
    assert_eq!(read_tree(&json!({"and": [a]})).as_deref(), Ok("=a"));
    assert_eq!(
        read_tree(&json!({"and": [a, b, c]})).as_deref(),
        Ok("=a =b =c")
    );
    assert_eq!(
        read_tree(&json!({"and": [a, {"and": [b, c]}]})).as_deref(),
        Ok("=a (=b =c)")
    );
    let error = read_tree(&json!({"or": []})).unwrap_err();
    assert!(error.contains("at least one operand"), "{error}");
}

#[test]
fn the_folding_is_stored_and_new_predicates_have_the_newest() {
    let tree = json!({"atom": {}});
    let folding = |json: Value| read(&json).map(|predicate| predicate.folding());
    assert_eq!(folding(json!({"tree": tree})), Ok(Folding::NEWEST));
    assert_eq!(
        folding(json!({"tree": tree, "folding": 1})),
        Ok(Folding::Case)
    );
    let error = folding(json!({"tree": tree, "folding": 3})).unwrap_err();
    assert!(error.contains("unknown version of folding 3"), "{error}");
}

#[test]
fn what_is_no_predicate_is_rejected_with_a_reason() {
    for (atom, reason) in [
        (json!({"hass": "media"}), "unknown field `hass`"),
        (json!({"author": "ann@a.example"}), "unknown field `author`"),
        (json!({"has": "cat"}), "expected media, poll"),
        (json!({"has": 1}), "invalid type: integer"),
        (json!({"has": "media", "is": "reply"}), "second condition"),
        (json!({"belonging": ""}), "expected a host"),
        (
            json!({"belonging": "5444416900293067341"}),
            "expected a host",
        ),
        (json!({"id_mask": {"acct": "ann"}}), "expected an account"),
        (
            json!({"id_mask": {"acct": "ann@a", "id": "x"}}),
            "expected an account",
        ),
        (json!({"mentions": "me"}), "expected an account"),
        (json!({"match_word": ""}), "a word must not be empty"),
        (
            json!({"match_word": {"folded": "a", "whole": "b"}}),
            "expected a text",
        ),
        (json!([]), "expected an object"),
    ] {
        let error = read_tree(&json!({ "atom": atom })).unwrap_err();
        assert!(error.contains(reason), "{atom}: {error}");
        assert!(error.contains("at line 1 column"), "{error}");
    }
    for tree in [
        json!({}),
        json!({"atom": {}, "not": {}}),
        json!({"nand": []}),
        json!(null),
    ] {
        assert!(read_tree(&tree).is_err(), "{tree}");
    }
}

#[test]
fn json_is_within_the_limits() {
    let word = json!({"atom": {"match_word": "a"}});
    let deep = |levels| (0..levels).fold(word.clone(), |tree, _| json!({ "not": tree }));
    assert!(read_tree(&deep(MAX_DEPTH)).is_ok());
    assert!(
        read_tree(&deep(MAX_DEPTH + 1))
            .unwrap_err()
            .contains("nested")
    );
    let wide = |len| json!({"or": vec![word.clone(); len]});
    assert!(read_tree(&wide(MAX_TERMS)).is_ok());
    assert!(
        read_tree(&wide(MAX_TERMS + 1))
            .unwrap_err()
            .contains("terms")
    );
    let long = |len| json!({"atom": {"match_word": "a".repeat(len)}});
    assert!(read_tree(&long(MAX_TEXT_BYTES - 1)).is_ok());
    assert!(
        read_tree(&long(MAX_TEXT_BYTES))
            .unwrap_err()
            .contains("longer")
    );
    let padded = format!("{}{}", " ".repeat(MAX_JSON_BYTES), wide(1));
    assert!(matches!(
        Predicate::from_json(&padded),
        Err(JsonError::TooLong)
    ));
}

#[test]
fn every_predicate_within_the_limits_fits_into_json() {
    let many = format!("{}=\u{1}", "---=\u{1} ".repeat(MAX_TERMS - 1));
    let long = "\u{1}".repeat(MAX_TEXT_BYTES);
    for text in [many, long] {
        let predicate = Predicate::parse(&text, &NAMES).unwrap();
        let json = serde_json::to_string(&predicate).unwrap();
        assert_eq!(Predicate::from_json(&json).unwrap(), predicate);
    }
}
