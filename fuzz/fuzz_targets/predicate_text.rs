//! The parser of the text form.

#![no_main]

use driftline_core::predicate::Predicate;
use driftline_fuzz::{NAMES, check};

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Predicate::parse(text, &NAMES) {
        Ok(predicate) => check(&predicate),
        Err(error) => {
            let columns = 1..=text.chars().count().max(1);
            assert!(columns.contains(&error.column), "{error}");
            assert!(error.problem.hint().ends_with('.'), "{error}");
        }
    }
});
