//! Scripts of several statements.

/// The statements of a script for PostgreSQL, without the semicolons between them. Text that has
/// only comments is not a statement.
pub(crate) fn statements(script: &str) -> impl Iterator<Item = &str> {
    let mut rest = script;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = end_of_first(rest);
            let (statement, after) = rest.split_at(end.at);
            rest = after.strip_prefix(';').unwrap_or(after);
            if end.has_code {
                return Some(statement.trim());
            }
        }
        None
    })
}

struct End {
    at: usize,
    has_code: bool,
}

/// The end of the first statement: a semicolon outside of quotes and comments.
fn end_of_first(script: &str) -> End {
    let mut has_code = false;
    let mut at = 0;
    while let Some(c) = script[at..].chars().next() {
        let rest = &script[at..];
        let skipped = match c {
            ';' => break,
            '\'' | '"' => quoted(rest, &rest[..1]),
            '$' => match dollar_tag(rest) {
                Some(tag) => quoted(rest, tag),
                None => 1,
            },
            '-' if rest.starts_with("--") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            c => c.len_utf8(),
        };
        has_code |= !c.is_whitespace();
        at += skipped;
    }
    End { at, has_code }
}

/// The length of the quoted text at the start of `text`. A doubled quote counts as two texts.
fn quoted(text: &str, quote: &str) -> usize {
    let inside = &text[quote.len()..];
    inside
        .find(quote)
        .map_or(text.len(), |end| end + 2 * quote.len())
}

/// The `$tag$` at the start of `text`.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 1;
    let name = &text[1..end];
    let is_tag = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.chars().all(is_tag).then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::statements;

    fn split(script: &str) -> Vec<&str> {
        statements(script).collect()
    }

    #[test]
    fn statements_end_at_semicolons() {
        assert_eq!(split("select 1; select 2;\n"), ["select 1", "select 2"]);
        assert_eq!(split(" select 1 "), ["select 1"]);
        assert_eq!(split(";; -- nothing; here\n"), [""; 0]);
    }

    #[test]
    fn semicolons_in_quotes_and_comments_end_nothing() {
        let quoted = "select 'a;''b', \";\" -- one; two\n from t";
        assert_eq!(split(&format!("{quoted};{quoted}")), [quoted, quoted]);
        let block = "do $do$ begin perform 'x'; execute $a$ ; $a$; end $do$";
        assert_eq!(
            split(&format!("{block};\nselect $1;")),
            [block, "select $1"]
        );
        let comment = "-- one; and\ncreate table t (a text)";
        assert_eq!(
            split(&format!("{comment}; select 'ä;'")),
            [comment, "select 'ä;'"]
        );
    }
}
