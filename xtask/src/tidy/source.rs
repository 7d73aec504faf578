use std::path::Path;

use super::offence::Offence;

/// No file is a drawer for things without a noun.
pub(super) fn check_name(path: &str) -> Option<Offence> {
    let file = Path::new(path).file_name()?.to_str()?;
    ["utils.rs", "helpers.rs", "common.rs"]
        .contains(&file)
        .then(|| Offence::new(path, 1, "a file named after nothing: name it by its noun"))
}

/// Looks at one file's text.
pub(super) fn check(path: &str, text: &str) -> Vec<Offence> {
    let mut offences = Vec::new();
    offences.extend(check_length(path, text));
    for (line, number) in text.lines().zip(1..) {
        if is_source(path)
            && let Some(left) = leftover(line)
        {
            let text = format!("`{left}` is left over: finish it or remove it");
            offences.push(Offence::new(path, number, text));
        }
        if let Some(place) = machine_path(line) {
            let text = format!("a path of one machine, `{place}`: make it relative");
            offences.push(Offence::new(path, number, text));
        }
    }
    offences
}

fn check_length(path: &str, text: &str) -> Option<Offence> {
    let (most, what) = if path == "ARCHITECTURE.md" {
        (300, "shorten it")
    } else if !path.ends_with(".rs") {
        return None;
    } else if is_test(path) {
        (800, "split it by noun")
    } else {
        (600, "split it by noun")
    };
    let lines = text.lines().count();
    (lines > most).then(|| {
        let text = format!("{lines} lines where {most} are allowed: {what}");
        Offence::new(path, lines, text)
    })
}

fn is_test(path: &str) -> bool {
    Path::new(path)
        .iter()
        .any(|part| part == "tests" || part == "tests.rs")
}

fn is_source(path: &str) -> bool {
    let extension = Path::new(path).extension().and_then(|text| text.to_str());
    extension.is_some_and(|text| SOURCES.contains(&text))
}

/// A marker of unfinished work.
fn leftover(line: &str) -> Option<&'static str> {
    let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let word = words.find_map(|word| WORDS.into_iter().find(|marker| *marker == word));
    word.or_else(|| CODE.into_iter().find(|marker| line.contains(marker)))
}

/// The start of an absolute path that only some machines have.
fn machine_path(line: &str) -> Option<&'static str> {
    MACHINE_PATHS.into_iter().find(|place| {
        line.match_indices(place).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            // A letter, dot or slash before it: the rest of a longer path or URL.
            !before.is_some_and(|letter| letter.is_alphanumeric() || "._-/}*~$".contains(letter))
        })
    })
}

const SOURCES: [&str; 9] = ["rs", "ts", "js", "svelte", "css", "sql", "toml", "py", "sh"];

// In halves, so that this file passes too.
const WORDS: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];
const CODE: [&str; 3] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("#[", "ignore"),
];
const MACHINE_PATHS: [&str; 3] = [
    concat!("/", "root/"),
    concat!("/", "work/"),
    concat!("/", "Users/"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, text: &str) -> Vec<String> {
        check(path, text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn drawers_have_no_place() {
        for path in ["utils.rs", "crates/id/src/helpers.rs", "a/common.rs"] {
            assert!(check_name(path).is_some(), "{path}");
        }
        assert_eq!(check_name("crates/id/src/uncommon.rs"), None);
    }

    #[test]
    fn files_are_short() {
        let lines = |count| "a\n".repeat(count);
        for (path, most, what) in [
            ("src/a.rs", 600, "split it by noun"),
            ("tests/a.rs", 800, "split it by noun"),
            ("src/a/tests.rs", 800, "split it by noun"),
            ("ARCHITECTURE.md", 300, "shorten it"),
        ] {
            let more = most + 1;
            let offence = format!("{path}:{more}: {more} lines where {most} are allowed: {what}");
            assert_eq!(check(path, &lines(most)), []);
            assert_eq!(shown(path, &lines(more)), [offence]);
        }
        assert_eq!(check("README.md", &lines(2000)), []);
    }

    #[test]
    fn nothing_is_left_over() {
        for marker in WORDS.into_iter().chain(CODE) {
            let text = format!("fn a() {{}}\n// {marker} later\n");
            let offence = format!("a.rs:2: `{marker}` is left over: finish it or remove it");
            assert_eq!(shown("a.rs", &text), [offence]);
            assert_eq!(check("a.md", &text), []);
        }
        let reason = format!("{} = \"slow\"]", CODE[2]);
        assert_eq!(check("a.rs", &reason).len(), 1);
        let longer = format!("let {}S = 1; // {}X", WORDS[0], WORDS[2]);
        assert_eq!(check("a.rs", &longer), []);
    }

    #[test]
    fn no_path_is_of_one_machine() {
        for place in MACHINE_PATHS {
            for before in ["see ", "", "\""] {
                assert_eq!(check("a.md", &format!("{before}{place}a")).len(), 1);
            }
            let url = format!("https://example.org{place}a and net{place} and ../x{place}");
            assert_eq!(check("a.md", &url), []);
        }
    }
}
