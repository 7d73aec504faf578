//! Versions of the peers, as locked when this program was built.

/// The version of a package in `Cargo.lock`; the first, where there are several.
pub(super) fn of(package: &str) -> &'static str {
    let mut lines = LOCK.lines();
    let name = format!("name = \"{package}\"");
    lines.find(|line| *line == name);
    let version = lines
        .next()
        .and_then(|line| line.strip_prefix("version = "));
    version.map_or("?", |version| version.trim_matches('"'))
}

const LOCK: &str = include_str!("../../Cargo.lock");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_a_version() {
        assert!(of("ferroid").starts_with("2."));
        assert_eq!(of("no-such-package"), "?");
    }
}
