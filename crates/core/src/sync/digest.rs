use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{ObjectKey, Usn, same_value::versioned};

/// A digest of the living objects of a library. It does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LibraryDigest {
    count: u64,
    sum: u64,
}

/// The body of a request for a digest: `POST /api/driftline/v1/sync/digest`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DigestRequest {
    /// The library: `account`.
    pub library: String,
}

/// The answer with a digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DigestAnswer {
    /// The identity of the server's store.
    pub server: String,
    /// The ID of the account.
    pub account: String,
    /// The cursor of a replica that has these objects.
    pub cursor: String,
    /// The number of objects.
    pub count: u64,
    /// The digest: 16 hexadecimal digits.
    pub digest: String,
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
    let mut hash = Sha256::new();
    let value = versioned(key.kind(), value.clone());
    let mut json = String::new();
    write_canonical(&value, &mut json);
    for part in [key.as_str(), &usn.to_string(), &json] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hash.finalize()[..8]);
    u64::from_be_bytes(first)
}

/// Writes JSON without spaces, with the members of objects by their names' Unicode scalar values.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            for (at, name) in names.into_iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write_canonical(&members[name], out);
            }
            out.push_str(if members.is_empty() { "{}" } else { "}" });
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                write_canonical(item, out);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
    fn canonical_json_has_one_order() {
        let mut out = String::new();
        let value = json!({"b": [1, {}, []], "a": {"d": null, "c": "\"é"}, "": true});
        write_canonical(&value, &mut out);
        assert_eq!(out, r#"{"":true,"a":{"c":"\"é","d":null},"b":[1,{},[]]}"#);
    }
}
