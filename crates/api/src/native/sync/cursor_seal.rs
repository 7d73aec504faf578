use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use driftline_store::sync::Cursor;
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
};

use crate::auth::opaque_secret::fill_random;

/// Seals the cursors of sources' libraries (ChaCha20-Poly1305, RFC 8439): a USN would reveal to a reader how many posts came
/// that the reader may not see. The key is made from the store's nonce, so a restored store reads no cursor from before.
pub(super) struct CursorSeal(Option<LessSafeKey>);

impl CursorSeal {
    pub(super) fn new(store_nonce: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, store_nonce.as_bytes());
        let bytes = hmac::sign(&key, b"driftline cursors of sources");
        let key = UnboundKey::new(&CHACHA20_POLY1305, bytes.as_ref());
        Self(key.ok().map(LessSafeKey::new))
    }

    /// Seals a cursor for one view of a library, such as `source:3 member`; `None` if the system has no random numbers.
    pub(super) fn seal(&self, cursor: &Cursor, view: &str) -> Option<String> {
        let key = self.0.as_ref()?;
        let mut nonce = [0; NONCE_LEN];
        fill_random(&mut nonce).ok()?;
        // The length would reveal the number of digits, so all texts have the same.
        let mut sealed = format!("{:>CURSOR_LENGTH$}", cursor.to_string()).into_bytes();
        let unique = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(unique, Aad::from(view), &mut sealed)
            .ok()?;
        Some(URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// Returns what was sealed for the same view; `None` for any other text.
    pub(super) fn open(&self, sealed: &str, view: &str) -> Option<Cursor> {
        let mut whole = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = whole.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let key = self.0.as_ref()?;
        let text = key.open_in_place(nonce, Aad::from(view), sealed).ok()?;
        std::str::from_utf8(text).ok()?.trim_start().parse().ok()
    }
}

/// More than a cursor's text has characters.
const CURSOR_LENGTH: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_opened_for_its_view_alone() {
        let seal = CursorSeal::new("a store");
        let cursor: Cursor = "1.1.0f.42".parse().expect("a cursor");
        let text = seal.seal(&cursor, "source:3 member").expect("sealed");
        let larger: Cursor = "1.1.0f.42000.a41999.h40000".parse().expect("a cursor");
        let other = seal.seal(&larger, "source:3 member").expect("sealed");
        assert_eq!(text.len(), other.len(), "the length reveals nothing");
        assert_eq!(seal.open(&text, "source:3 member"), Some(cursor));
        assert_eq!(seal.open(&text, "source:4 member"), None);
        assert_eq!(
            CursorSeal::new("another").open(&text, "source:3 member"),
            None
        );
        assert_eq!(seal.open("1.1.0f.42", "source:3 member"), None);
    }
}
