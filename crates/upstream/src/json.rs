//! JSON values without guaranteed types: what is missing, `null` or of
//! another type reads as nothing.

use std::borrow::Cow;

use driftline_core::{
    answer::{Failure, FailureKind},
    upstream_id::UpstreamId,
};
use jiff::{Timestamp, civil, tz::TimeZone};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::excerpt;

/// Why an item of an answer is no post.
#[derive(Debug)]
pub(crate) enum BadItem {
    /// It is not the JSON that was expected.
    Json(serde_json::Error),
    /// It has no usable ID; holds the value found instead.
    Id(String),
}

impl BadItem {
    /// The failure that it means for the answer; `item` says which it is.
    pub(crate) fn failure(self, item: &str) -> Failure {
        match self {
            Self::Json(error) => Failure::new(
                FailureKind::BadJson,
                format!("{item} is not a post ({error})"),
            ),
            Self::Id(id) => Failure::new(
                FailureKind::BadId,
                format!("{item} has no usable ID (it is {id}); IDs are texts or whole numbers"),
            ),
        }
    }
}

impl From<serde_json::Error> for BadItem {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

/// An ID's own text. A number's digits are kept as written: a float would
/// round those above 2^53.
pub(crate) fn id(raw: Option<&RawValue>) -> Result<UpstreamId, BadItem> {
    let json = raw.map_or("null", RawValue::get);
    if json.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(UpstreamId::from(json));
    }
    match text(raw) {
        Some(id) if !id.is_empty() => Ok(UpstreamId::new(id.into_owned())),
        _ => Err(BadItem::Id(if raw.is_none() {
            "missing or null".to_owned()
        } else {
            excerpt::words(json.as_bytes())
        })),
    }
}

/// A text, if the JSON is one. U+0000, which databases refuse, turns into
/// U+FFFD; the post's raw JSON keeps it.
pub(crate) fn text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let json = raw?.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let text: String = serde_json::from_str(json).ok()?;
    Some(Cow::Owned(text.replace('\0', "\u{fffd}")))
}

/// A whole number.
pub(crate) fn count(raw: Option<&RawValue>) -> Option<i64> {
    raw?.get().parse().ok()
}

/// A time in ISO 8601, Unix ms; one without an offset is taken for UTC.
pub(crate) fn time_ms(raw: Option<&RawValue>) -> Option<i64> {
    let text = text(raw)?;
    let time = text.parse::<Timestamp>().or_else(|_| {
        let civil: civil::DateTime = text.parse()?;
        TimeZone::UTC.to_timestamp(civil)
    });
    time.ok().map(Timestamp::as_millisecond)
}

/// Whether the JSON is an object.
pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// An object's members, their values left as they were written.
///
/// Values are not looked into before they are asked for, so that nothing
/// nested without end, and no value of an unexpected type, breaks the rest.
#[derive(Debug, Default)]
pub(crate) struct Object<'j>(Vec<(Cow<'j, str>, &'j RawValue)>);

impl<'j> Object<'j> {
    /// The members of an object; `None` if the JSON is not an object.
    pub(crate) fn of(raw: &'j RawValue) -> Option<Self> {
        Self::read(raw).ok()
    }

    /// The members of an object.
    pub(crate) fn read(raw: &'j RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(raw.get())
    }

    /// A member that is not `null`; of repeated ones, the last.
    pub(crate) fn get(&self, key: &str) -> Option<&'j RawValue> {
        let (_, value) = self.0.iter().rev().find(|(name, _)| name == key)?;
        (value.get() != "null").then_some(*value)
    }

    /// Every member, in the order written.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &'j RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// A member that is a text.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'j, str>> {
        text(self.get(key))
    }

    /// A member that is a text with something in it.
    pub(crate) fn some_text(&self, key: &str) -> Option<Cow<'j, str>> {
        self.text(key).filter(|text| !text.is_empty())
    }

    /// A member that is an ID written as text.
    pub(crate) fn id(&self, key: &str) -> Option<UpstreamId> {
        let text = self.some_text(key)?;
        Some(UpstreamId::new(text.into_owned()))
    }

    /// A member that is a whole number.
    pub(crate) fn count(&self, key: &str) -> Option<i64> {
        count(self.get(key))
    }

    /// Whether a member is `true`.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|raw| raw.get() == "true")
    }

    /// A member that is an object; empty if it is missing.
    pub(crate) fn object(&self, key: &str) -> Self {
        self.get(key).and_then(Self::of).unwrap_or_default()
    }

    /// The items of a member that is a list; empty if it is missing.
    pub(crate) fn list(&self, key: &str) -> Vec<&'j RawValue> {
        let raw = self.get(key).map_or("[]", RawValue::get);
        serde_json::from_str(raw).unwrap_or_default()
    }

    /// The objects among the items of a member that is a list.
    pub(crate) fn objects(&self, key: &str) -> impl Iterator<Item = Self> + use<'j> {
        self.list(key).into_iter().filter_map(Self::of)
    }
}

impl<'de: 'j, 'j> Deserialize<'de> for Object<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor).map(Self)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((Key(key), value)) = map.next_entry()? {
            members.push((key, value));
        }
        Ok(members)
    }
}

/// A key, borrowed where it holds no escapes; plain `Cow`s are never borrowed.
#[derive(Deserialize)]
struct Key<'j>(#[serde(borrow)] Cow<'j, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> Object<'_> {
        serde_json::from_str(json).expect("an object")
    }

    #[test]
    fn what_is_of_another_type_reads_as_nothing() {
        let odd = object(
            r#"{"t":1,"c":"1","f":"true","o":[],"l":{},"i":7,"e":"","n":null,"n2":1,"n2":null}"#,
        );
        assert_eq!(odd.text("t"), None);
        assert_eq!(odd.count("c"), None);
        assert!(!odd.flag("f"));
        assert_eq!(odd.object("o").members().count(), 0);
        assert_eq!(odd.list("l").len(), 0);
        assert_eq!((odd.id("i"), odd.id("e")), (None, None));
        assert!(odd.get("n").is_none() && odd.get("n2").is_none() && odd.get("x").is_none());
    }

    #[test]
    fn members_are_read_by_their_type() {
        let o = object(
            r#"{"t":"a\u0000\"","c":-3,"f":true,"o":{"k":"v"},"l":[1,{"k":"w"}],"a\u0062":"x"}"#,
        );
        assert_eq!(o.text("t").as_deref(), Some("a\u{fffd}\""));
        assert_eq!(o.count("c"), Some(-3));
        assert!(o.flag("f"));
        assert_eq!(o.object("o").text("k").as_deref(), Some("v"));
        assert_eq!(o.list("l").len(), 2);
        let inner: Vec<_> = o.objects("l").filter_map(|o| o.id("k")).collect();
        assert_eq!(inner, [UpstreamId::from("w")]);
        assert_eq!(o.text("ab").as_deref(), Some("x"));
    }

    #[test]
    fn nesting_without_end_breaks_nothing() {
        let depth = 100_000;
        let json = format!(
            r#"{{"deep":{}1{},"id":"1"}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        assert_eq!(object(&json).id("id"), Some("1".into()));
    }
}
