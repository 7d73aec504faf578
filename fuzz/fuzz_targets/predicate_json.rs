//! The parser of the JSON form.

#![no_main]

use driftline_core::predicate::Predicate;
use driftline_fuzz::check;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(predicate) = Predicate::from_json(text) {
        check(&predicate);
    }
});
