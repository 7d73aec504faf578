//! Texts of posts, as a terminal may show them.

/// Returns a text without characters by which a post could command the terminal, or turn the rest of
/// the line round.
pub fn plain(text: &str) -> String {
    let is_shown = |c: &char| {
        !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().filter(is_shown).collect()
}

/// Returns the beginning of a text.
pub fn beginning(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_TEXT).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

const MAX_TEXT: usize = 100;
