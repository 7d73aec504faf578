/// A function in a formatted Rust file.
pub(super) struct Function<'t> {
    /// The line with its name, from 1.
    pub(super) line: usize,
    pub(super) name: &'t str,
    /// True for `pub` without a restriction.
    pub(super) is_public: bool,
    /// The lines of the comments and attributes before it.
    pub(super) docs: Vec<&'t str>,
    /// The text with its parameters, which begins with generic ones.
    pub(super) parameters: String,
    /// The returned type. Empty if nothing is returned.
    pub(super) returned: String,
}

/// The functions of a file, with or without bodies.
pub(super) fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let found = (0..lines.len()).filter_map(|at| function_at(&lines, at));
    found.collect()
}

fn function_at<'t>(lines: &[&'t str], at: usize) -> Option<Function<'t>> {
    let (qualifiers, rest) = lines[at].split_once("fn ")?;
    let is_qualifier =
        |word: &str| ["const", "async", "unsafe"].contains(&word) || word.starts_with("pub");
    if !qualifiers.split_whitespace().all(is_qualifier) {
        return None;
    }
    let (name, rest) = rest.split_at(rest.find(|c: char| !c.is_alphanumeric() && c != '_')?);
    let mut signature = rest.to_owned();
    for line in &lines[at + 1..] {
        if signature.ends_with(['{', ';', '}']) {
            break;
        }
        signature += " ";
        signature += line;
    }
    let (parameters, returned) = split(&signature);
    let is_end = |line: &str| line.is_empty() || line.ends_with(['{', ';', '}']);
    let before = lines[..at].iter().rev();
    Some(Function {
        line: at + 1,
        name,
        is_public: qualifiers.starts_with("pub "),
        docs: before
            .take_while(|line| line.starts_with("///") || !is_end(line))
            .copied()
            .collect(),
        parameters: parameters.to_owned(),
        returned: returned.to_owned(),
    })
}

/// The text with the parameters, and the returned type.
fn split(signature: &str) -> (&str, &str) {
    let (signature, _) = signature.split_once(" where ").unwrap_or((signature, ""));
    let arrows = signature.match_indices(") -> ");
    let mut parts = arrows.map(|(at, arrow)| (&signature[..at], &signature[at + arrow.len()..]));
    // Other arrows belong to parameters that are closures.
    let is_balanced = |(_, returned): &(&str, &str)| {
        let returned = returned.replace("->", "");
        let count = |c: char| returned.matches(c).count();
        count('(') == count(')') && count('<') == count('>')
    };
    parts.find(is_balanced).unwrap_or((signature, ""))
}
