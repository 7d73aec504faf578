//! Mastodon's entities as tables of the members that are copied from an upstream's JSON.

use super::{members::Members, object::Object};

/// The content type of every entity.
pub(super) const JSON: &str = "application/json; charset=utf-8";

/// A member that is copied if its value is of the right kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copied {
    key: &'static str,
    kind: Kind,
    /// The JSON to write otherwise; `None` omits the member.
    otherwise: Option<&'static str>,
}

/// The kinds of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Bool,
    Whole,
    List,
    Object,
}

impl Copied {
    /// A member that is always written.
    pub(super) const fn always(key: &'static str, kind: Kind, otherwise: &'static str) -> Self {
        Self {
            key,
            kind,
            otherwise: Some(otherwise),
        }
    }

    /// A member that is written if the upstream has it.
    pub(super) const fn optional(key: &'static str, kind: Kind) -> Self {
        Self {
            key,
            kind,
            otherwise: None,
        }
    }
}

impl Kind {
    pub(super) fn fits(self, json: &str) -> bool {
        match self {
            Self::Text => json.starts_with('"'),
            Self::Bool => json == "true" || json == "false",
            Self::Whole => json.parse::<i64>().is_ok(),
            Self::List => json.starts_with('['),
            Self::Object => json.starts_with('{'),
        }
    }
}

/// Copies the members in the table.
pub(super) fn copy(object: &mut Object<'_>, members: &Members<'_>, table: &[Copied]) {
    for copied in table {
        let json = members.json(copied.key);
        if let Some(json) = json
            .filter(|json| copied.kind.fits(json))
            .or(copied.otherwise)
        {
            object.json(copied.key, json);
        }
    }
}

/// Writes an array of objects, each with the members that `write` adds.
pub(super) fn list(
    out: &mut Vec<u8>,
    objects: &[Members<'_>],
    write: impl Fn(&mut Object<'_>, &Members<'_>),
) {
    out.push(b'[');
    for (at, members) in objects.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let mut object = Object::open(out);
        write(&mut object, members);
        object.close();
    }
    out.push(b']');
}
