use std::borrow::Cow;

/// The characters with Unicode's property `Bidi_Control`, which change the direction of the text
/// after them, even in other people's lines. They are the Arabic letter mark, the two marks, the
/// five embeddings and overrides with their end, and the four isolates with theirs.
pub const BIDI_CONTROLS: [char; 12] = [
    '\u{061c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// A text of another server without [`BIDI_CONTROLS`]. In texts of this server's users they are an
/// error instead.
pub fn without_bidi_controls(text: &str) -> Cow<'_, str> {
    match text.contains(BIDI_CONTROLS) {
        true => Cow::Owned(text.replace(BIDI_CONTROLS, "")),
        false => Cow::Borrowed(text),
    }
}
