//! Excerpts of an answer for messages, of at most 80 characters.

/// The largest number of an answer's characters in a message.
const MAX_CHARS: usize = 80;
/// The largest number of an answer's bytes that are searched.
const MAX_BYTES: usize = 8 * 1024;

/// The first words of a text, on one line and without characters that control a terminal.
pub fn words(bytes: &[u8]) -> String {
    one_line(&String::from_utf8_lossy(head(bytes)))
}

/// The title of an HTML page, or else its first words.
pub fn html_words(bytes: &[u8]) -> String {
    let page = String::from_utf8_lossy(head(bytes));
    let lower = page.to_ascii_lowercase();
    let title = lower
        .find("<title")
        .and_then(|start| Some(start + lower[start..].find('>')? + 1))
        .and_then(|start| page[start..].split('<').next())
        .map(one_line)
        .filter(|title| !title.is_empty());
    title.unwrap_or_else(|| one_line(&without_tags(&page)))
}

fn head(bytes: &[u8]) -> &[u8] {
    bytes.get(..MAX_BYTES).unwrap_or(bytes)
}

fn without_tags(page: &str) -> String {
    let parts = page.split('<').filter_map(|part| part.split_once('>'));
    parts.flat_map(|(_, after)| [" ", after]).collect()
}

fn one_line(text: &str) -> String {
    let visible: String = text
        .chars()
        .map(|c| if steers(c) { ' ' } else { c })
        .collect();
    let line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut chars = line.chars();
    let mut short: String = chars.by_ref().take(MAX_CHARS).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// True for control characters, and those that change the direction of text.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_steered() {
        assert_eq!(words(b"a\x1b[2Jb\r\n\tc\xff"), "a [2Jb c\u{fffd}");
        assert_eq!(words("a\u{202e}b".as_bytes()), "a b");
    }

    #[test]
    fn it_stays_short() {
        let long = "x ".repeat(100_000);
        assert_eq!(words(long.as_bytes()).chars().count(), MAX_CHARS + 1);
    }

    #[test]
    fn a_page_is_quoted_by_its_title() {
        assert_eq!(
            html_words(b"<!DOCTYPE html><html><TITLE lang=en>Just a\nmoment...</title><body>x"),
            "Just a moment..."
        );
        assert_eq!(
            html_words(b"<html><title></title><p>502 Bad <b>Gateway</b>"),
            "502 Bad Gateway"
        );
        assert_eq!(html_words(b"<html"), "");
        assert_eq!(html_words("<title>İ</title>".as_bytes()), "İ");
    }
}
