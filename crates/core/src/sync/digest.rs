use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{ObjectKey, Usn, key::is_hex, same_value::versioned};
use crate::post::Visibility;

/// A digest of the living objects of a library. It does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LibraryDigest {
    count: u64,
    sum: u64,
}

/// The answer with a digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DigestAnswer {
    /// The identity of the server's store.
    pub server: String,
    /// The ID of the account.
    pub account: String,
    /// The cursor of a replica that has these objects. Of a source: the cursor of the request for the next part.
    pub cursor: String,
    /// The number of objects.
    pub count: u64,
    /// The digest: 16 hexadecimal digits.
    pub digest: String,
    /// True if these are a part of a source's objects and others follow. The digests of all parts are added.
    #[serde(default)]
    pub more: bool,
}

impl LibraryDigest {
    /// The digest of some objects from the sums of the upper and the lower 32 bits of their [`object_digest`]s.
    pub fn from_sums(count: u64, upper: i64, lower: i64) -> Self {
        let sum = (upper << 32).wrapping_add(lower);
        Self {
            count,
            sum: sum.cast_unsigned(),
        }
    }

    /// Adds an entry of a source: the first 64 bits of the SHA-256 of its key, its place, the time of its status's last edit in
    /// Unix ms (or nothing) and its visibility, each followed by a zero byte.
    pub fn add_entry(
        &mut self,
        key: &str,
        place: u64,
        edited_at_ms: Option<i64>,
        visibility: Visibility,
    ) {
        let edited_at = edited_at_ms.map(|ms| ms.to_string()).unwrap_or_default();
        self.add(hash([
            key,
            &place.to_string(),
            &edited_at,
            visibility.name(),
        ]));
    }

    /// Adds another part of the library.
    pub fn add_part(&mut self, part: LibraryDigest) {
        self.sum = self.sum.wrapping_add(part.sum);
        self.count = self.count.saturating_add(part.count);
    }

    /// The digest of an answer; `None` if its text is invalid.
    pub fn of_answer(answer: &DigestAnswer) -> Option<Self> {
        let sum = u64::from_str_radix(&answer.digest, 16).ok()?;
        let count = answer.count;
        is_hex(&answer.digest, 16).then_some(Self { count, sum })
    }

    /// Adds an object by its [`object_digest`].
    pub fn add(&mut self, digest: u64) {
        self.sum = self.sum.wrapping_add(digest);
        self.count += 1;
    }

    /// The number of objects.
    pub fn count(self) -> u64 {
        self.count
    }

    /// The sum as 16 hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:016x}", self.sum)
    }
}

/// The digest of one object: the first 64 bits of the SHA-256 of its key, USN and value, each followed by a zero byte. The
/// value is canonical JSON, without the members that only the server gives.
pub fn object_digest(key: &ObjectKey, usn: Usn, value: &Value) -> u64 {
    // The members of a `Value` have the order of their names' bytes, which is that of their scalar values.
    let json = versioned(key.kind(), value.clone()).to_string();
    hash([key.as_str(), &usn.to_string(), &json])
}

/// The first 64 bits of the SHA-256 of texts, each followed by a zero byte.
fn hash<const N: usize>(texts: [&str; N]) -> u64 {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hash.finalize()[..8]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sync::{ObjectValue, VALUE_FORM};

    #[test]
    fn a_digest_is_of_the_objects_in_any_order() {
        let note = ObjectKey::parse("note:https://a.example/1").expect("a key");
        let bookmark = ObjectKey::parse("bookmark:https://a.example/1").expect("a key");
        let digest = |objects: &[(&ObjectKey, u64, Value)]| {
            let mut digest = LibraryDigest::default();
            for (key, usn, value) in objects {
                digest.add(object_digest(key, Usn::new(*usn), value));
            }
            digest
        };
        let text = json!({"text": "x"});
        let both = digest(&[(&note, 1, text.clone()), (&bookmark, 2, json!({}))]);
        let sent = json!({"post": "7", "status": {"content": "a"}});
        let reversed = digest(&[(&bookmark, 2, sent), (&note, 1, text.clone())]);
        assert_eq!(both, reversed);
        assert_eq!(both.count(), 2);
        assert_ne!(
            both,
            digest(&[(&note, 2, text.clone()), (&bookmark, 2, json!({}))])
        );
        assert_ne!(
            both,
            digest(&[(&note, 1, json!({"text": "y"})), (&bookmark, 2, json!({}))])
        );
        assert_eq!(digest(&[]).text(), "0000000000000000");
        let sums = |digests: &[i64]| {
            let upper = digests.iter().map(|digest| digest >> 32).sum();
            let lower = digests.iter().map(|digest| digest & 0xffff_ffff).sum();
            LibraryDigest::from_sums(digests.len() as u64, upper, lower)
        };
        let one = |key, usn, value| object_digest(key, Usn::new(usn), &value).cast_signed();
        let parts = [one(&note, 1, text.clone()), one(&bookmark, 2, json!({}))];
        assert_eq!(sums(&parts), both);
        assert_eq!(sums(&[i64::MIN, -1, i64::MAX]).text(), "fffffffffffffffe");
        // SHA-256 of `note:https://a.example/1`, NUL, `1`, NUL, `{"text":"x"}`, NUL.
        assert_eq!(digest(&[(&note, 1, text)]).text(), "cabb593783c25a93");
    }

    #[test]
    fn the_parts_of_a_source_add_up_to_the_whole() {
        let mut whole = LibraryDigest::default();
        let mut parts = [whole, whole];
        for (at, key) in ["post:a", "post:b", "post:c"].into_iter().enumerate() {
            let edited_at_ms = (at > 0).then_some(1_000);
            for digest in [&mut whole, &mut parts[at % 2]] {
                digest.add_entry(key, 113, edited_at_ms, Visibility::Public);
            }
        }
        let mut sum = LibraryDigest::default();
        for part in parts {
            let answer = DigestAnswer {
                server: String::new(),
                account: String::new(),
                cursor: String::new(),
                count: part.count(),
                digest: part.text(),
                more: true,
            };
            sum.add_part(LibraryDigest::of_answer(&answer).expect("a digest"));
            for wrong in ["", "+000000000000001", "000000000000000A", "1"] {
                let digest = wrong.to_owned();
                let wrong = DigestAnswer {
                    digest,
                    ..answer.clone()
                };
                assert_eq!(LibraryDigest::of_answer(&wrong), None);
            }
        }
        assert_eq!(sum, whole);
        let mut edited = LibraryDigest::default();
        edited.add_entry("post:a", 113, Some(1_000), Visibility::Public);
        let mut moved = LibraryDigest::default();
        moved.add_entry("post:a", 114, None, Visibility::Public);
        let mut narrowed = LibraryDigest::default();
        narrowed.add_entry("post:a", 113, None, Visibility::Private);
        let mut first = LibraryDigest::default();
        first.add_entry("post:a", 113, None, Visibility::Public);
        assert!(
            [edited, moved, narrowed]
                .iter()
                .all(|other| *other != first)
        );
        // SHA-256 of `post:a`, NUL, `113`, NUL, NUL, `public`, NUL.
        assert_eq!(first.text(), "0e3f0faff1996a10");
    }

    /// A store keeps digests of values as its program wrote them.
    #[test]
    fn another_form_of_values_has_another_number() {
        let id = "00000000000000000000000000000001";
        let filter = json!({
            "title": "cats", "contexts": ["home"], "action": "warn", "expires_at": null,
            "keywords": [{"keyword": "cat", "whole_word": true}], "posts": [],
        });
        let profile = json!({
            "display_name": "Ann", "note": "", "fields": [{"name": "a", "value": "b"}],
            "locked": false, "bot": false, "discoverable": true,
        });
        let objects = [
            ("bookmark:https://a.example/1".to_owned(), json!({})),
            ("favourite:https://a.example/1".to_owned(), json!({})),
            (format!("list:{id}"), json!({"title": "cats"})),
            (format!("list-member:{id}:ann@local"), json!({})),
            ("marker:home".to_owned(), json!({"last_read": "12"})),
            (format!("filter:{id}"), filter),
            ("note:https://a.example/1".to_owned(), json!({"text": "a"})),
            (format!("draft:{id}"), json!({"text": "a"})),
            ("profile:self".to_owned(), profile),
            ("follow:ann@local".to_owned(), json!({})),
            ("block:ann@local".to_owned(), json!({})),
            ("mute:ann@local".to_owned(), json!({})),
            ("account-note:ann@local".to_owned(), json!({"text": "a"})),
        ];
        let mut digest = LibraryDigest::default();
        for (key, value) in objects {
            let key = ObjectKey::parse(key).expect("a key");
            let value = ObjectValue::read(&key, value).expect("a value").json();
            digest.add(object_digest(&key, Usn::new(1), &value));
        }
        let expected = (1, "7d12de543d61a881");
        assert_eq!((VALUE_FORM, &*digest.text()), expected, "raise VALUE_FORM");
    }

    #[test]
    fn canonical_json_has_one_order() {
        let value = json!({"b": [1, {}, []], "a": {"d": null, "c": "\"é"}, "": true});
        let canonical = r#"{"":true,"a":{"c":"\"é","d":null},"b":[1,{},[]]}"#;
        assert_eq!(value.to_string(), canonical);
    }
}
