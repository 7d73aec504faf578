//! The rules for doc comments, and for the names and parameters of functions.
//!
//! The files in the lists next to this module do not follow them yet. The lists only shrink.

use std::collections::BTreeMap;

use super::functions::{Function, functions};
use super::offence::Offence;

/// The text files of the project, by path.
pub(super) type Files = BTreeMap<String, String>;

/// Checks all Rust files against the rules.
pub(super) fn check(files: &Files) -> Vec<Offence> {
    RULES.iter().flat_map(|rule| rule.check(files)).collect()
}

struct Rule {
    /// The lines of a Rust file that break the rule, from 1.
    broken: fn(&str) -> Vec<usize>,
    advice: &'static str,
    /// The path of the list of exempt files, one path a line.
    list: &'static str,
}

impl Rule {
    fn check(&self, files: &Files) -> Vec<Offence> {
        let listed = files.get(self.list).map_or("", String::as_str);
        let mut unused: BTreeMap<&str, usize> = listed.lines().zip(1..).collect();
        let mut offences = Vec::new();
        for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
            let broken = (self.broken)(text);
            if broken.is_empty() || unused.remove(&**path).is_some() {
                continue;
            }
            offences.extend(
                broken
                    .iter()
                    .map(|line| Offence::new(path, *line, self.advice)),
            );
        }
        offences.extend(unused.into_iter().map(|(path, line)| {
            let text = format!("{path} needs no exemption: remove it from the list");
            Offence::new(self.list, line, text)
        }));
        offences
    }
}

const RULES: [Rule; 4] = [
    Rule {
        broken: relative_docs,
        advice: "the doc comment begins with a relative word: begin with a noun or a verb",
        list: "xtask/src/tidy/english/relative_docs.txt",
    },
    Rule {
        broken: functions_called_of,
        advice: "a function is called `of`: name what it does, such as `from_url` or `parse`",
        list: "xtask/src/tidy/english/functions_called_of.txt",
    },
    Rule {
        broken: tuple_parameters,
        advice: "a public function has a tuple as a parameter: take its parts, or a struct",
        list: "xtask/src/tidy/english/tuple_parameters.txt",
    },
    Rule {
        broken: undocumented_errors,
        advice: "a public function returns a `Result` and has no `# Errors` section: list the cases",
        list: "xtask/src/tidy/english/undocumented_errors.txt",
    },
];

/// The first lines of doc comments that begin with a relative word.
fn relative_docs(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut was_doc = false;
    for (line, number) in text.lines().map(str::trim_start).zip(1..) {
        let is_doc = line.starts_with("///") || line.starts_with("//!");
        if is_doc && !was_doc {
            let mut words = line[3..].trim_start().split(|c: char| !c.is_alphabetic());
            let is_relative = words.next().is_some_and(|word| RELATIVE.contains(&word));
            found.extend(is_relative.then_some(number));
        }
        was_doc = is_doc;
    }
    found
}

fn functions_called_of(text: &str) -> Vec<usize> {
    lines_where(text, |function| function.name == "of")
}

fn tuple_parameters(text: &str) -> Vec<usize> {
    lines_where(text, |function| {
        let mut types = function.parameters.split(": ").skip(1);
        function.is_public && types.any(is_tuple)
    })
}

fn undocumented_errors(text: &str) -> Vec<usize> {
    lines_where(text, |function| {
        let (name, _) = function.returned.split_once('<').unwrap_or_default();
        let has_section = function.docs.contains(&"/// # Errors");
        function.is_public && name.ends_with("Result") && !has_section
    })
}

fn lines_where(text: &str, is_broken: impl Fn(&Function<'_>) -> bool) -> Vec<usize> {
    let broken = functions(text).into_iter().filter(is_broken);
    broken.map(|function| function.line).collect()
}

/// True if the text begins with a tuple's type, or a reference to one.
fn is_tuple(text: &str) -> bool {
    let text = text.trim_start_matches('&');
    let text = match text.split_once(' ') {
        Some((lifetime, text)) if lifetime.starts_with('\'') => text,
        _ => text,
    };
    let inside = text.trim_start_matches("mut ").strip_prefix('(');
    let others = [")", "impl ", "dyn "];
    inside.is_some_and(|inside| !others.iter().any(|other| inside.starts_with(other)))
}

const RELATIVE: [&str; 9] = [
    "What", "Whether", "Who", "Whoever", "Which", "Where", "How", "When", "Whose",
];

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    #[test]
    fn doc_comments_begin_with_nouns_or_verbs() {
        let text = "//! What it is.\n\n/// A name.\n/// Where it is.\na";
        assert_eq!(relative_docs(text), [1]);
        for word in RELATIVE {
            assert_eq!(relative_docs(&format!("a\n    /// {word} it is.")), [2]);
            assert_eq!(relative_docs(&format!("/// {word}so it is.")), NONE);
        }
    }

    #[test]
    fn functions_have_names() {
        let text =
            "impl A {\n    pub(super) fn of(\n        a: u8,\n    ) {}\n    fn often() {}\n}";
        assert_eq!(functions_called_of(text), [2]);
        assert_eq!(functions_called_of("const fn of<A>() -> u8 {"), [1]);
    }

    #[test]
    fn parameters_are_no_tuples() {
        for kind in ["(u8, B<C>)", "&(u8, u8)", "&'a mut (Vec<u8>, u8)"] {
            let text = format!("pub fn a<F: Fn(u8) -> u8>(b: F, (c, d): {kind}) {{");
            assert_eq!(tuple_parameters(&text), [1], "{kind}");
            assert_eq!(tuple_parameters(&text["pub ".len()..]), NONE, "{kind}");
        }
        for kind in ["()", "&[(u8, u8)]", "&(impl A + ?Sized)", "F<(u8, u8)>"] {
            let text = format!("pub fn a(b: {kind}, c: u8) -> (u8, u8) {{");
            assert_eq!(tuple_parameters(&text), NONE, "{kind}");
        }
    }

    #[test]
    fn errors_are_documented() {
        let text = "/// A.\n#[must_use]\npub async fn a(\n    b: u8,\n) -> io::Result<u8> {\n";
        assert_eq!(undocumented_errors(text), [3]);
        let documented = text.replace("A.\n", "A.\n///\n/// # Errors\n/// If it fails.\n");
        let restricted = text.replace("pub ", "pub(crate) ");
        let job = "pub fn a(b: impl Fn() -> Result<u8, C>) -> Option<u8>;";
        for text in [&*documented, &restricted, job] {
            assert_eq!(undocumented_errors(text), NONE, "{text}");
        }
    }

    #[test]
    fn exempt_files_are_listed_and_must_offend() {
        let rule = &RULES[0];
        let (bad, good) = ("/// What it is.", "/// A name.");
        let texts = [
            ("a.rs", bad),
            ("b.rs", good),
            ("c.rs", bad),
            ("d.md", bad),
            (rule.list, "a.rs\nb.rs\ngone.rs\n"),
        ];
        let files = texts.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let shown = rule.check(&Files::from(files)).into_iter();
        let shown: Vec<_> = shown.map(|offence| offence.to_string()).collect();
        let unused = |line, path: &str| {
            let list = rule.list;
            format!("{list}:{line}: {path} needs no exemption: remove it from the list")
        };
        let missing = format!("c.rs:1: {}", rule.advice);
        assert_eq!(shown, [missing, unused(2, "b.rs"), unused(3, "gone.rs")]);
    }
}
