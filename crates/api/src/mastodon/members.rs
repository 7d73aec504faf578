use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// A JSON object's members, their values unparsed.
#[derive(Debug, Default)]
pub(super) struct Members<'j>(Vec<(Cow<'j, str>, &'j RawValue)>);

impl<'j> Members<'j> {
    /// The members of a JSON object; `None` if the text is not one.
    pub(super) fn parse(json: &'j str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// The JSON of a member; the last of repeated ones.
    pub(super) fn json(&self, key: &str) -> Option<&'j str> {
        let member = self.0.iter().rev().find(|(name, _)| name == key);
        member.map(|(_, value)| value.get())
    }

    /// A string member.
    pub(super) fn text(&self, key: &str) -> Option<Cow<'j, str>> {
        text(self.json(key)?)
    }

    /// An ID member: a string or a whole number.
    pub(super) fn id(&self, key: &str) -> Option<Cow<'j, str>> {
        let json = self.json(key)?;
        if json.bytes().all(|digit| digit.is_ascii_digit()) {
            return Some(Cow::Borrowed(json));
        }
        text(json).filter(|id| !id.is_empty())
    }

    /// An object member.
    pub(super) fn object(&self, key: &str) -> Option<Members<'j>> {
        Members::parse(self.json(key)?)
    }

    /// The objects in an array member.
    pub(super) fn objects(&self, key: &str) -> Vec<Members<'j>> {
        let Some(json) = self.json(key).filter(|json| *json != "[]") else {
            return Vec::new();
        };
        let items: Vec<&'j RawValue> = serde_json::from_str(json).unwrap_or_default();
        items
            .into_iter()
            .filter_map(|item| Members::parse(item.get()))
            .collect()
    }
}

impl<'de: 'j, 'j> Deserialize<'de> for Members<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor).map(Members)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(DEFAULT_MEMBERS);
        while let Some((Key(key), value)) = map.next_entry()? {
            members.push((key, value));
        }
        Ok(members)
    }
}

/// A key, borrowed where it holds no escapes; plain `Cow`s are never borrowed.
#[derive(Deserialize)]
struct Key<'j>(#[serde(borrow)] Cow<'j, str>);

fn text(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

const DEFAULT_MEMBERS: usize = 40;
