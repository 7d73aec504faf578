//! Values that are copied as written, except for the parts that concern their reader and the IDs of
//! posts and accounts.

use std::collections::HashSet;

use driftline_core::{
    api::Api,
    social::{BIDI_CONTROLS, without_bidi_controls},
};
use serde_json::value::RawValue;

use crate::{
    account::{AccountNames, qualified},
    copied_status::is_for_anyone,
    html_members::{Markup, markup, may_hold_html, write_cleaned},
    object_writer::ObjectWriter,
    raw_object::{RawObject, decoded, id, text},
    references::{is_address, may_refer, member, of_part, part_of, referent},
    template::{AccountForm, Referent, Template},
    viewer::{Member, Part},
    web_address::{is_address_member, may_hold_other_schemes, write_address},
};

/// Copies JSON of one upstream.
#[derive(Debug, Clone, Copy)]
pub struct Copier<'a> {
    /// The upstream's origin.
    pub origin: &'a str,
    /// Its API. The posts of X and Twitter from which theirs were made are left out. No client of
    /// Mastodon's API knows their form, and they refer to others by IDs throughout.
    pub api: Api,
    /// The host of this server's accounts. Room is left for those that the upstream shows: it says
    /// nothing about them that counts here.
    pub own_host: Option<&'a str>,
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
    /// An ID: a text or a number.
    Id,
}

impl Kind {
    fn fits(self, json: &str) -> bool {
        match self {
            Self::Text => json.starts_with('"'),
            Self::Bool => json == "true" || json == "false",
            Self::Whole => json.parse::<i64>().is_ok(),
            Self::List => json.starts_with('['),
            Self::Object => json.starts_with('{'),
            Self::Id => json.starts_with(|first: char| first == '"' || first.is_ascii_digit()),
        }
    }
}

/// A member of an object that is being written: its name, its key as written, and its value.
pub(crate) type Written<'m, 'j> = (&'m str, &'j str, &'j RawValue);

impl Copier<'_> {
    /// Copies a member of an object, unless it belongs to the reader.
    pub(crate) fn member(
        &self,
        object: &mut ObjectWriter<'_>,
        part: Option<Part>,
        (name, key, value): Written<'_, '_>,
        depth: usize,
    ) {
        let inner = match member(part, name) {
            Member::OfViewer => return,
            Member::Inner(inner) => Some(inner),
            Member::OfPost => None,
        };
        if self.api != Api::Mastodon && matches!(name, "x" | "twitter") {
            return;
        }
        let out = object.written_key(key);
        if let Some(common) = part.and_then(|part| part.value_for_others(name, value.get())) {
            return out.json(common);
        }
        match (part, name) {
            (Some(of), "id") if of_part(of).is_some() => local(out, of_part(of), value),
            (Some(Part::Account), "acct") => match text(value) {
                Some(acct) => out.value(&qualified(acct, self.origin)),
                None => out.json(value.get()),
            },
            // It would change the direction of the text after it, even in other lines.
            (Some(Part::Account), "display_name") => match text(value) {
                Some(name) if name.contains(BIDI_CONTROLS) => {
                    out.value(&without_bidi_controls(&name));
                }
                _ => out.json(value.get()),
            },
            (Some(Part::Card), "html") => write_cleaned(out, Markup::Embed, value),
            (Some(Part::Field), "value") => write_cleaned(out, Markup::Content, value),
            // The text as its author typed it.
            (Some(Part::Source), _) if value.get().starts_with('"') => out.json(value.get()),
            _ => self.value(out, inner, (name, value), depth),
        }
    }

    /// Copies the value of a member. A value that is nested deeper than all known ones becomes
    /// `null`.
    pub(crate) fn value(
        &self,
        out: &mut Template,
        part: Option<Part>,
        (name, value): (&str, &RawValue),
        depth: usize,
    ) {
        let json = value.get();
        let referent = referent(name);
        if !json.starts_with(['{', '[']) {
            return match (referent, markup(name)) {
                (Some(_), _) => local(out, referent, value),
                (None, Some(markup)) => write_cleaned(out, markup, value),
                (None, None) if is_address_member(name) => write_address(out, name, value),
                (None, None) => out.json(json),
            };
        }
        let is_plain = part.is_none_or(Part::may_be_plain)
            && !may_name(json)
            && !may_hold_html(part, json)
            && !may_hold_other_schemes(json);
        if is_plain && referent.is_none() && self.api == Api::Mastodon {
            return out.json(json);
        }
        if depth == 0 {
            return out.json("null");
        }
        if json.starts_with('[') {
            return self.list(out, part, (name, value), depth - 1);
        }
        match RawObject::from_value(value) {
            Some(object) => self.object(out, part, &object, depth - 1),
            None => out.json("null"),
        }
    }

    fn list(
        &self,
        out: &mut Template,
        part: Option<Part>,
        (name, value): (&str, &RawValue),
        depth: usize,
    ) {
        let items: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
        let is_viewers = |item: &RawValue| part.is_some_and(|part| part.is_viewers_item(item));
        let items = items.into_iter().filter(|item| !is_viewers(item));
        out.json("[");
        for (index, item) in items.enumerate() {
            if index > 0 {
                out.json(",");
            }
            self.value(out, part.and_then(Part::item), (name, item), depth);
        }
        out.json("]");
    }

    /// Copies an object. A post is copied in the form of Mastodon's API, or becomes `null` if it is
    /// not public.
    fn object(&self, out: &mut Template, part: Option<Part>, object: &RawObject<'_>, depth: usize) {
        let part = part_of(part, object);
        if part == Some(Part::Account)
            && let Some(name) = self.own_name(&AccountNames::from_account(object, self.origin))
        {
            return out.own_account(AccountForm::Whole, name);
        }
        let is_of_post = part == Some(Part::Status);
        if is_of_post && (object.get("account").is_some() || object.get("content").is_some()) {
            return self.nested_status(out, object, depth);
        }
        let quoted = object.get("quoted_status").and_then(RawObject::from_value);
        let hides_quoted = is_of_post && quoted.is_some_and(|quoted| !is_for_anyone(&quoted));
        let mut writer = ObjectWriter::open(out);
        for written in last_written(object) {
            match written.0 {
                "state" if hides_quoted => writer.json("state", "\"unauthorized\""),
                _ => self.member(&mut writer, part, written, depth),
            }
        }
        writer.close();
    }

    /// Copies the objects of a list, each in the given form.
    pub(crate) fn objects<'j>(
        &self,
        out: &mut Template,
        part: Part,
        objects: impl Iterator<Item = RawObject<'j>>,
        form: &Form<'_>,
        depth: usize,
    ) {
        out.json("[");
        for (index, object) in objects.enumerate() {
            if index > 0 {
                out.json(",");
            }
            self.formed(out, part, &object, form, |_, _| {}, depth)
                .close();
        }
        out.json("]");
    }

    /// Copies an object into a form, in its own order. Missing members are added at the end. The
    /// returned object is still open.
    pub(crate) fn formed<'o>(
        &self,
        out: &'o mut Template,
        part: Part,
        object: &RawObject<'_>,
        form: &Form<'_>,
        mut write: impl FnMut(&mut Template, &'static str),
        depth: usize,
    ) -> ObjectWriter<'o> {
        let mut writer = ObjectWriter::open(out);
        let part = part_of(Some(part), object);
        let members = last_written(object);
        for written @ (name, _, value) in &members {
            let made = form.made.iter().find(|made| *made == name);
            let copied = form.copied.iter().find(|copied| copied.key == *name);
            match (made, copied) {
                (Some(made), _) => write(writer.key(made), made),
                (_, Some(copied)) if !copied.fits(value) => {
                    writer.json(copied.key, copied.otherwise);
                }
                _ => self.member(&mut writer, part, *written, depth),
            }
        }
        let is_missing = |key: &str| members.iter().all(|(name, ..)| *name != key);
        for made in form.made.iter().filter(|made| is_missing(made)) {
            write(writer.key(made), made);
        }
        for copied in form.copied.iter().filter(|copied| is_missing(copied.key)) {
            writer.json(copied.key, copied.otherwise);
        }
        writer
    }
}

/// The members that an object always has.
pub(crate) struct Form<'t> {
    /// Members whose values are made here.
    pub(crate) made: &'t [&'static str],
    /// Members that are copied if their values have the right kind.
    pub(crate) copied: &'t [Copied],
}

/// A member that is copied if its value has the right kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    pub(crate) key: &'static str,
    kind: Kind,
    /// The JSON to write otherwise.
    pub(crate) otherwise: &'static str,
}

impl Copied {
    pub(crate) const fn new(key: &'static str, kind: Kind, otherwise: &'static str) -> Self {
        Self {
            key,
            kind,
            otherwise,
        }
    }

    pub(crate) fn fits(&self, value: &RawValue) -> bool {
        self.kind.fits(value.get())
    }
}

/// The members of an object as written. Of repeated ones only the last is returned.
fn last_written<'o, 'j>(object: &'o RawObject<'j>) -> Vec<Written<'o, 'j>> {
    let mut all: Vec<_> = object.written().collect();
    // Keys without escapes are equal only if they are written equally.
    let is_plain = |(_, key, _): &Written<'_, '_>| !key.contains('\\');
    if all.len() <= MAX_COMPARED && all.iter().all(is_plain) {
        let repeated = |at: usize| all[at + 1..].iter().any(|(_, key, _)| *key == all[at].1);
        if !(0..all.len()).any(repeated) {
            return all;
        }
    }
    let mut seen = HashSet::with_capacity(all.len());
    all.reverse();
    all.retain(|(.., key, _)| seen.insert(decoded(key)));
    all.reverse();
    all
}

/// Comparing this number of names one by one takes less time than hashing them.
const MAX_COMPARED: usize = 64;

/// Leaves room for a local ID, or writes `null` if the value is not an ID. An address stays as it
/// is.
pub(crate) fn local(out: &mut Template, referent: Option<Referent>, value: &RawValue) {
    match (referent, id(value)) {
        (Some(referent), Some(id)) if !is_address(&id) => out.id(referent, &id),
        (_, Some(id)) if is_address(&id) => out.json(value.get()),
        _ => out.json("null"),
    }
}

/// True if the JSON may refer to a post or an account, or has a key that is written with escapes.
fn may_name(json: &str) -> bool {
    may_refer(json) || json.contains('\\')
}
