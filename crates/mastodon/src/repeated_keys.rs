//! The removal of repeated keys. Posts are stored as received, except for members that a later
//! member of the same object repeats. Of these the last counts; readers of JSON disagree about the
//! others.

use std::{borrow::Cow, collections::HashMap};

use crate::{json_string::end_of_string, raw_object::decoded};

/// The text without members that a later one of the same object repeats, at any depth; `None` if
/// there are no such members. The rest stays as written. The text must be valid JSON.
///
/// # Errors
/// [`TooDeep`] if the text is nested too deep.
pub(crate) fn without_repeats(json: &str) -> Result<Option<String>, TooDeep> {
    let mut scan = Scan::default();
    scan.run(json)?;
    Ok((!scan.repeated.is_empty()).then(|| scan.cut(json)))
}

/// JSON that is nested too deep for its readers. Most readers of JSON have a limit, and one post
/// must not break the pages that list it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is nested more than {MAX_DEPTH} levels deep")]
pub struct TooDeep;

#[derive(Default)]
struct Scan<'j> {
    /// The lists (`None`) and objects that are open.
    open: Vec<Option<Object<'j>>>,
    /// The text of each member, to the beginning of the next one of its object.
    members: Vec<(usize, usize)>,
    /// The names of the open objects' members, each with the last member of that name, the
    /// innermost object's at the end. Names are bytes, because texts do not distinguish halves of
    /// surrogate pairs.
    names: Vec<(Cow<'j, [u8]>, usize)>,
    /// Members that are repeated later.
    repeated: Vec<usize>,
}

struct Object<'j> {
    /// The index of its first name.
    names_from: usize,
    /// Its names, once there are too many to compare them one by one.
    index: Option<HashMap<Cow<'j, [u8]>, usize>>,
    /// Its last member so far.
    last: Option<usize>,
    expects_key: bool,
}

impl<'j> Scan<'j> {
    fn run(&mut self, json: &'j str) -> Result<(), TooDeep> {
        let bytes = json.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    let end = end_of_string(bytes, at).unwrap_or(bytes.len());
                    self.string(json, at, end);
                    at = end;
                    continue;
                }
                b'{' => {
                    let object = Object {
                        names_from: self.names.len(),
                        index: None,
                        last: None,
                        expects_key: true,
                    };
                    self.open.push(Some(object));
                }
                b'[' => self.open.push(None),
                b'}' | b']' => {
                    if let Some(Some(object)) = self.open.pop() {
                        self.names.truncate(object.names_from);
                    }
                }
                b',' => {
                    if let Some(Some(object)) = self.open.last_mut() {
                        object.expects_key = true;
                    }
                }
                _ => {}
            }
            if self.open.len() > MAX_DEPTH {
                return Err(TooDeep);
            }
            at += 1;
        }
        Ok(())
    }

    fn string(&mut self, json: &'j str, start: usize, end: usize) {
        let Some(Some(object)) = self.open.last_mut() else {
            return;
        };
        if !std::mem::take(&mut object.expects_key) {
            return;
        }
        let member = self.members.len();
        self.members.push((start, start));
        if let Some(last) = object.last.replace(member) {
            self.members[last].1 = start;
        }
        let name = decoded(&json[start..end]).unwrap_or_default();
        let earlier = object.last_of(&mut self.names, name, member);
        self.repeated.extend(earlier);
    }

    fn cut(mut self, json: &str) -> String {
        // Members are in order of their beginnings, and a removed one may contain another.
        self.repeated.sort_unstable();
        let mut kept = String::with_capacity(json.len());
        let mut from = 0;
        for member in self.repeated {
            let (start, end) = self.members[member];
            if start >= from {
                kept.push_str(&json[from..start]);
                from = end;
            }
        }
        kept + &json[from..]
    }
}

impl<'j> Object<'j> {
    /// Makes a member the last of its name; returns the previous one.
    fn last_of(
        &mut self,
        names: &mut Vec<(Cow<'j, [u8]>, usize)>,
        name: Cow<'j, [u8]>,
        member: usize,
    ) -> Option<usize> {
        if let Some(index) = &mut self.index {
            return index.insert(name, member);
        }
        let own = names.get_mut(self.names_from..).unwrap_or_default();
        if let Some((_, last)) = own.iter_mut().find(|(own, _)| *own == name) {
            return Some(std::mem::replace(last, member));
        }
        names.push((name, member));
        if names.len() - self.names_from > MAX_COMPARED {
            self.index = Some(names.drain(self.names_from..).collect());
        }
        None
    }
}

/// Comparing this number of names one by one takes less time than hashing them. A hostile object
/// has more.
const MAX_COMPARED: usize = 64;
/// Some readers of JSON stop at 128 levels, and the lists that contain a post have levels of their
/// own.
const MAX_DEPTH: usize = 100;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn of_repeated_members_the_last_stays_where_it_is() {
        for (json, kept) in [
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"b":2,"a":3}"#),
            (r#"{"a":1,"a":2,"a":3}"#, r#"{"a":3}"#),
            (
                r#"{ "a" : {"x":1,"x":2} , "b":[{"y":1e400, "\u0079" : 2}], "a":[ ] }"#,
                r#"{ "b":[{"\u0079" : 2}], "a":[ ] }"#,
            ),
            (
                r#"[{"a":"}{\",","b":"a","a":{"a":{"a":1}}},{"a":1}]"#,
                r#"[{"b":"a","a":{"a":{"a":1}}},{"a":1}]"#,
            ),
            (r#"{"":1,"":{}}"#, r#"{"":{}}"#),
            (r#"{"\ud800":1,"\uD800":2}"#, r#"{"\uD800":2}"#),
        ] {
            assert_eq!(without_repeats(json), Ok(Some(kept.to_owned())), "{json}");
        }
    }

    #[test]
    fn what_repeats_nothing_stays() {
        for json in [
            r#"{"a":{"a":"a"},"b":["a","a",{"a":1},{"a":1}],"A":"\\\"a\":"}"#,
            r#"{"\ud800":1,"\udc00":2,"\ufffd":3,"\ud800\udc00":4}"#,
            "[]",
            "7",
            r#""a""#,
        ] {
            assert_eq!(without_repeats(json), Ok(None), "{json}");
        }
    }

    #[test]
    fn objects_of_many_members_repeat_nothing_either() {
        let members: Vec<_> = (0..1000)
            .map(|n| format!(r#""{n}":{{"{n}":{n}}}"#))
            .collect();
        let json = |repeated: &str| format!("{{{}{repeated}}}", members.join(","));
        assert_eq!(without_repeats(&json("")), Ok(None));
        let kept = without_repeats(&json(r#","7":1,"900":2"#)).expect("not deep");
        let kept = kept.expect("two are repeated");
        assert!(!kept.contains(r#""7":{"#) && !kept.contains(r#""900":{"#));
        assert!(
            kept.ends_with(r#""999":{"999":999},"7":1,"900":2}"#),
            "{kept}"
        );
    }

    #[test]
    fn nesting_has_an_end() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(without_repeats(&nested(MAX_DEPTH)), Ok(None));
        assert_eq!(without_repeats(&nested(MAX_DEPTH + 1)), Err(TooDeep));
        let quoted = format!("\"{}\"", "[".repeat(1000));
        assert_eq!(without_repeats(&quoted), Ok(None));
    }

    proptest! {
        #[test]
        fn other_readers_see_the_same(
            names in proptest::collection::vec("[ab\"\\\\,{}:]{0,2}", 0..8),
            texts in proptest::collection::vec("[ab\"\\\\,{}:]{0,3}", 8),
        ) {
            let quoted = |text: &str| serde_json::to_string(text).expect("JSON");
            let members: Vec<_> = names.iter().zip(&texts).map(|(name, text)| {
                format!("{}:{{{0}:1, {}:{}}}", quoted(name), quoted(text), quoted(text))
            }).collect();
            let json = format!("{{{}}}", members.join(","));
            let kept = without_repeats(&json).expect("not deep").unwrap_or(json.clone());
            // It keeps the last of repeated members.
            let value = |json: &str| serde_json::from_str::<Value>(json).expect("JSON");
            prop_assert_eq!(value(&kept), value(&json));
            prop_assert_eq!(without_repeats(&kept), Ok(None));
        }
    }
}
