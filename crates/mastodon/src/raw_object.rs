//! JSON values without guaranteed types.

use std::{borrow::Cow, fmt};

use driftline_core::{text::without_nul, upstream_id::UpstreamId};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::time::parse_time_ms;

/// A JSON object whose members are kept as written: their order, repetitions, and the text of every
/// value.
///
/// A value is parsed only when it is requested, so neither endless nesting nor a value of an
/// unexpected type affects the others. A member that is missing, `null`, or of another type than
/// requested reads as missing. Of repeated members the last counts.
#[derive(Debug, Clone, Default)]
pub struct RawObject<'j>(Vec<(Key<'j>, &'j RawValue)>);

impl<'j> RawObject<'j> {
    /// Parses an object.
    ///
    /// # Errors
    /// [`serde_json::Error`] if the text is not one JSON object.
    pub fn parse(json: &'j str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Parses a value; `None` if it is not an object.
    pub fn from_value(value: &'j RawValue) -> Option<Self> {
        Self::parse(value.get()).ok()
    }

    /// A member's value.
    pub fn get(&self, name: &str) -> Option<&'j RawValue> {
        let (_, value) = self.0.iter().rev().find(|(key, _)| key.name == name)?;
        (value.get() != "null").then_some(*value)
    }

    /// Each member's name and value, in the order written.
    pub fn members(&self) -> impl Iterator<Item = (&str, &'j RawValue)> {
        self.0.iter().map(|(key, value)| (&*key.name, *value))
    }

    /// Each member's name, its name as it was written (JSON, with its quotes), and its value.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&str, &'j str, &'j RawValue)> {
        let members = self.0.iter();
        members.map(|(key, value)| (&*key.name, key.written, *value))
    }

    /// A text: see [`text`].
    pub fn text(&self, name: &str) -> Option<Cow<'j, str>> {
        text(self.get(name)?)
    }

    /// A text that is not empty.
    pub fn some_text(&self, name: &str) -> Option<Cow<'j, str>> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// An ID: a text that is not empty, or a whole number whose digits are kept as written.
    pub fn id(&self, name: &str) -> Option<Cow<'j, str>> {
        id(self.get(name)?)
    }

    /// An ID that is written as a text.
    pub fn text_id(&self, name: &str) -> Option<UpstreamId> {
        let text = self.some_text(name)?;
        Some(UpstreamId::new(text.into_owned()))
    }

    /// A whole number.
    pub fn whole(&self, name: &str) -> Option<i64> {
        whole(self.get(name)?)
    }

    /// True if the member is `true`.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    /// A time in ISO 8601, Unix ms: see [`parse_time_ms`].
    pub fn time_ms(&self, name: &str) -> Option<i64> {
        parse_time_ms(&self.text(name)?)
    }

    /// An object. It has no members if the member is missing.
    pub fn object(&self, name: &str) -> Self {
        self.get(name)
            .and_then(Self::from_value)
            .unwrap_or_default()
    }

    /// The items of a list. Empty if the member is missing.
    pub fn list(&self, name: &str) -> Vec<&'j RawValue> {
        self.get(name).and_then(items).unwrap_or_default()
    }

    /// The objects among the items of a list.
    pub fn objects(&self, name: &str) -> impl Iterator<Item = Self> + use<'j> {
        self.list(name).into_iter().filter_map(Self::from_value)
    }
}

/// The text of a value. U+0000, which databases reject, becomes U+FFFD: see [`without_nul`].
pub fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let json = value.get();
    Some(match decoded(json)? {
        Cow::Borrowed(_) => Cow::Borrowed(&json[1..json.len() - 1]),
        Cow::Owned(bytes) => {
            let text = String::from_utf8(bytes).ok()?;
            Cow::Owned(without_nul(&text).into_owned())
        }
    })
}

/// The name for which a key stands. The key is JSON with its quotes. Half of a surrogate pair
/// becomes U+FFFD.
pub(crate) fn name(key: &str) -> Option<Cow<'_, str>> {
    Some(match decoded(key)? {
        Cow::Borrowed(_) => Cow::Borrowed(&key[1..key.len() - 1]),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    })
}

/// The bytes of a JSON string; `None` for another value. They are UTF-8, except for halves of
/// surrogate pairs, each of which has its three bytes.
pub(crate) fn decoded(json: &str) -> Option<Cow<'_, [u8]>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner.as_bytes()));
    }
    let mut json = serde_json::Deserializer::from_str(json);
    json.deserialize_bytes(BytesVisitor).ok().map(Cow::Owned)
}

/// The items of a value, if it is a list.
pub(crate) fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    let json = value.get();
    let is_list = json.starts_with('[');
    is_list.then(|| serde_json::from_str(json).ok()).flatten()
}

/// The ID in a value, in the form in which this server knows the post or account: see
/// [`UpstreamId::stable`].
pub fn id(value: &RawValue) -> Option<Cow<'_, str>> {
    let id = written_id(value)?;
    match UpstreamId::stable_text(&id) {
        Some(stable) => Some(Cow::Owned(stable)),
        None => Some(id),
    }
}

/// The ID in a value: a text that is not empty, or a whole number whose digits are kept as written.
/// A float would round numbers above 2^53.
pub(crate) fn written_id(value: &RawValue) -> Option<Cow<'_, str>> {
    let json = value.get();
    if json.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Cow::Borrowed(json));
    }
    text(value).filter(|id| !id.is_empty())
}

/// The whole number in a value.
pub fn whole(value: &RawValue) -> Option<i64> {
    value.get().parse().ok()
}

/// True if the value is an object, by its first character.
pub(crate) fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

impl<'de: 'j, 'j> Deserialize<'de> for RawObject<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor).map(Self)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(Key<'de>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(DEFAULT_MEMBERS);
        while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
            members.push((Key::from_written(key.get())?, value));
        }
        Ok(members)
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(bytes.to_vec())
    }
}

#[derive(Debug, Clone)]
struct Key<'j> {
    name: Cow<'j, str>,
    /// JSON, with its quotes.
    written: &'j str,
}

impl<'j> Key<'j> {
    fn from_written<E: serde::de::Error>(written: &'j str) -> Result<Self, E> {
        let name = name(written).ok_or_else(|| E::custom("a key that is no text"))?;
        Ok(Self { name, written })
    }
}

/// The approximate number of a status's members.
const DEFAULT_MEMBERS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> RawObject<'_> {
        RawObject::parse(json).expect("an object")
    }

    #[test]
    fn what_is_of_another_type_reads_as_nothing() {
        let odd = object(
            r#"{"t":1,"c":"1","f":"true","o":[],"l":{},"i":7,"e":"","n":null,"n2":1,"n2":null}"#,
        );
        assert_eq!(odd.text("t"), None);
        assert_eq!(odd.whole("c"), None);
        assert!(!odd.flag("f"));
        assert_eq!(odd.object("o").members().count(), 0);
        assert_eq!(odd.list("l").len(), 0);
        assert_eq!((odd.text_id("i"), odd.text_id("e")), (None, None));
        assert_eq!((odd.id("i").as_deref(), odd.id("e")), (Some("7"), None));
        assert_eq!(odd.time_ms("i"), None);
        assert!(odd.get("n").is_none() && odd.get("n2").is_none() && odd.get("x").is_none());
    }

    #[test]
    fn members_are_read_by_their_type() {
        let o = object(
            r#"{"t":"a\u0000\"","c":-3,"f":true,"o":{"k":"v"},"l":[1,{"k":"w"}],"a\u0062":"x"}"#,
        );
        assert_eq!(o.text("t").as_deref(), Some("a\u{fffd}\""));
        assert_eq!(o.whole("c"), Some(-3));
        assert!(o.flag("f"));
        assert_eq!(o.object("o").text("k").as_deref(), Some("v"));
        assert_eq!(o.list("l").len(), 2);
        let inner: Vec<_> = o.objects("l").filter_map(|o| o.text_id("k")).collect();
        assert_eq!(inner, [UpstreamId::from("w")]);
        assert_eq!(o.text("ab").as_deref(), Some("x"));
    }

    #[test]
    fn members_are_kept_as_written() {
        let o = object(r#"{ "b" : 1e400, "a\u0062":18446744073709551616 , "b":[ 1 ] }"#);
        let written: Vec<_> = o.written().map(|(n, w, v)| (n, w, v.get())).collect();
        assert_eq!(
            written,
            [
                ("b", r#""b""#, "1e400"),
                ("ab", r#""a\u0062""#, "18446744073709551616"),
                ("b", r#""b""#, "[ 1 ]"),
            ]
        );
        assert_eq!(o.get("b").map(RawValue::get), Some("[ 1 ]"));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for json in ["[]", "null", "7", "\"{}\"", "{", "{}}", ""] {
            assert!(RawObject::parse(json).is_err(), "{json}");
        }
    }

    #[test]
    fn nesting_without_end_breaks_nothing() {
        let depth = 100_000;
        let json = format!(
            r#"{{"deep":{}1{},"id":"1"}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        assert_eq!(object(&json).text_id("id"), Some("1".into()));
    }
}
