//! JSON: IDs are strings, whatever their size.
#![cfg(feature = "serde")]

use driftline_id::Id;

struct Post;

#[test]
fn ids_are_strings_in_json() {
    let id = Id::<Post>::new((1 << 53) + 1);
    assert_eq!(serde_json::to_string(&id).unwrap(), "\"9007199254740993\"");
    assert_eq!(
        serde_json::from_str::<Id<Post>>("\"9007199254740993\"").unwrap(),
        id
    );
}

#[test]
fn numbers_are_refused_with_the_reason() {
    let message = |json| match serde_json::from_str::<Id<Post>>(json) {
        Ok(id) => panic!("{json} was read as {id}"),
        Err(error) => error.to_string(),
    };
    assert!(message("5").contains("as a string of digits"));
    assert!(message("9007199254740993").contains("2^53"));
    assert!(message("\"-5\"").contains("leave out the '-'"));
    assert!(message("null").contains("as a string"));
}
