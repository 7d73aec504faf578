//! Members that are copied from one object to another as they were written.

use serde_json::value::RawValue;

use crate::{object_writer::ObjectWriter, raw_object::RawObject};

/// A member that is copied if its value is of the right kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    key: &'static str,
    kind: Kind,
    /// The JSON to write otherwise; `None` omits the member.
    otherwise: Option<&'static str>,
}

/// The kinds of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Whole,
    /// A list.
    List,
    /// An object.
    Object,
}

impl Copied {
    /// A member that is always written.
    pub(crate) const fn always(key: &'static str, kind: Kind, otherwise: &'static str) -> Self {
        Self {
            key,
            kind,
            otherwise: Some(otherwise),
        }
    }

    /// A member that is written if the upstream has it.
    pub(crate) const fn optional(key: &'static str, kind: Kind) -> Self {
        Self {
            key,
            kind,
            otherwise: None,
        }
    }
}

impl Kind {
    fn fits(self, json: &str) -> bool {
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
pub(crate) fn copy(object: &mut ObjectWriter<'_>, members: &RawObject<'_>, table: &[Copied]) {
    for copied in table {
        let json = members.get(copied.key).map(RawValue::get);
        let json = json.filter(|json| copied.kind.fits(json));
        if let Some(json) = json.or(copied.otherwise) {
            object.json(copied.key, json);
        }
    }
}

/// Writes an array of objects, each with the members that `write` adds.
pub(crate) fn write_list<'j>(
    out: &mut Vec<u8>,
    objects: impl Iterator<Item = RawObject<'j>>,
    write: impl Fn(&mut ObjectWriter<'_>, &RawObject<'j>),
) {
    out.push(b'[');
    for (at, members) in objects.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let mut object = ObjectWriter::open(out);
        write(&mut object, &members);
        object.close();
    }
    out.push(b']');
}
