use super::offence::Offence;

/// A crate takes the workspace's lints.
pub(super) fn check_lints(path: &str, text: &str) -> Option<Offence> {
    let mut lines = text.lines().map(str::trim);
    let inherits = lines.any(|line| line == "[lints]")
        && lines
            .take_while(|line| !line.starts_with('['))
            .any(|line| line == "workspace = true");
    (!inherits).then(|| {
        let text = "the workspace's lints are not taken: add `[lints]` with `workspace = true`";
        Offence::new(path, 1, text)
    })
}

/// A crate that reads no clock has clippy refuse them.
pub(super) fn check_clippy(path: &str, text: Option<&str>) -> Vec<Offence> {
    let lines: Vec<&str> = text
        .unwrap_or_default()
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .collect();
    let listed = lines
        .iter()
        .position(|line| line.starts_with("disallowed-methods"));
    let list = &lines[listed.unwrap_or(lines.len())..];
    CLOCKS
        .iter()
        .filter(|clock| {
            let quoted = format!("\"{clock}\"");
            !list.iter().any(|line| line.contains(&quoted))
        })
        .map(|clock| {
            let text = format!("clippy does not refuse `{clock}`: add it to disallowed-methods");
            Offence::new(path, 1, text)
        })
        .collect()
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
        assert_eq!(
            check_lints("a", "[package]\n\n[lints]\nworkspace = true\n"),
            None
        );
        assert!(check_lints("a", "[package]\nworkspace = true\n").is_some());
        assert!(check_lints("a", "[lints]\n\n[package]\nworkspace = true\n").is_some());
    }

    #[test]
    fn clippy_refuses_the_clocks() {
        let own = include_str!("../../../crates/id/clippy.toml");
        assert_eq!(check_clippy("a", Some(own)), []);
        assert_eq!(check_clippy("a", None).len(), CLOCKS.len());
        let commented = own.replace(
            "    { path = \"std::time::I",
            "    # { path = \"std::time::I",
        );
        assert_eq!(
            check_clippy("a", Some(&commented))[0].to_string(),
            "a:1: clippy does not refuse `std::time::Instant::now`: add it to disallowed-methods"
        );
        let elsewhere = own.replace("disallowed-methods", "other");
        assert_eq!(check_clippy("a", Some(&elsewhere)).len(), CLOCKS.len());
    }
}
