use super::offence::Offence;

/// A crate takes the workspace's lints.
pub(super) fn check_lints(path: &str, text: &str) -> Option<Offence> {
    (!text.contains("\n[lints]\nworkspace = true\n")).then(|| {
        let text = "the workspace's lints are not taken: add `[lints]` with `workspace = true`";
        Offence::new(path, 1, text)
    })
}

/// A crate that reads no clock has clippy refuse them.
pub(super) fn check_clippy(path: &str, text: &str) -> Vec<Offence> {
    let (_, list) = text.split_once("disallowed-methods").unwrap_or_default();
    let refuses = |clock: &str| {
        let quoted = format!("{{ path = \"{clock}\"");
        list.lines()
            .any(|line| line.trim_start().starts_with(&quoted))
    };
    let missing = CLOCKS.iter().filter(|clock| !refuses(clock));
    let offences = missing.map(|clock| {
        let text = format!("clippy does not refuse `{clock}`: add it to disallowed-methods");
        Offence::new(path, 1, text)
    });
    offences.collect()
}

const CLOCKS: [&str; 4] = [
    "std::time::SystemTime::now",
    "std::time::Instant::now",
    "rand::rng",
    "rand::random",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_takes_the_lints() {
        let taken = "[package]\n\n[lints]\nworkspace = true\n";
        assert_eq!(check_lints("a", taken), None);
        assert!(check_lints("a", "[package]\nworkspace = true\n").is_some());
        assert!(check_lints("a", "[lints]\n\n[package]\nworkspace = true\n").is_some());
    }

    #[test]
    fn clippy_refuses_the_clocks() {
        let own = include_str!("../../../crates/id/clippy.toml");
        assert_eq!(check_clippy("a", own), []);
        let commented = own.replace(
            "    { path = \"std::time::I",
            "    # { path = \"std::time::I",
        );
        assert_eq!(
            check_clippy("a", &commented)[0].to_string(),
            "a:1: clippy does not refuse `std::time::Instant::now`: add it to disallowed-methods"
        );
        for other in ["", &own.replace("disallowed-methods", "other")] {
            assert_eq!(check_clippy("a", other).len(), CLOCKS.len());
        }
    }
}
