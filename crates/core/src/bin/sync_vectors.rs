//! Runs the conformance vectors of the sync protocol on the machine as it was built for another target. It ends with 0 if all
//! of them hold, else with the number of the first that does not, since a program in WebAssembly has no other output.

use std::process::ExitCode;

#[path = "../../tests/sync/vector.rs"]
mod vector;

fn main() -> ExitCode {
    let vectors = vector::vectors();
    let is_wrong = |case| vector::outcome(case) != vector::expected(case);
    let number = match vectors.iter().position(is_wrong) {
        Some(wrong) => u8::try_from(wrong + 1).unwrap_or(u8::MAX),
        None => 0,
    };
    ExitCode::from(number)
}
