//! JSON as a list of paths and values, each as it was written but for white space.

use serde_json::value::RawValue;

/// The names of members, and `[n]` for the items of lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Path(Vec<String>);

impl Path {
    /// The name of the member, or of the list that it is in.
    pub(crate) fn last(&self) -> &str {
        let is_name = |part: &&String| !part.starts_with('[');
        self.0.iter().rev().find(is_name).map_or("", String::as_str)
    }

    /// Whether a member on the way has one of these names, or the last two parts of a path.
    fn is_below(&self, names: &[String]) -> bool {
        let members: Vec<&str> = self
            .0
            .iter()
            .filter(|part| !part.starts_with('['))
            .map(String::as_str)
            .collect();
        names.iter().any(|name| match name.split_once('.') {
            Some((outer, inner)) => members.windows(2).any(|pair| pair == [outer, inner]),
            None => members.contains(&name.as_str()),
        })
    }
}

/// Every value that is neither an object nor a list, and every empty one of these.
pub(crate) fn flatten(json: &str) -> Vec<(Path, String)> {
    let mut found = Vec::new();
    value(&mut found, &mut Vec::new(), json.trim());
    found
}

/// What is below none of these names; an object that has nothing left is gone as well.
pub(crate) fn without(all: Vec<(Path, String)>, names: &[String]) -> Vec<(Path, String)> {
    all.into_iter()
        .filter(|(path, _)| !path.is_below(names))
        .collect()
}

fn value(found: &mut Vec<(Path, String)>, path: &mut Vec<String>, json: &str) {
    let before = found.len();
    if json.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(json).expect("a list");
        for (at, item) in items.into_iter().enumerate() {
            path.push(format!("[{at}]"));
            value(found, path, item.get());
            path.pop();
        }
        if found.len() == before {
            found.push((Path(path.clone()), "[]".to_owned()));
        }
    } else if json.starts_with('{') {
        let object = driftline_mastodon::RawObject::parse(json).expect("an object");
        for (name, member) in object.members() {
            path.push(name.to_owned());
            value(found, path, member.get());
            path.pop();
        }
        if found.len() == before {
            found.push((Path(path.clone()), "{}".to_owned()));
        }
    } else {
        found.push((Path(path.clone()), json.to_owned()));
    }
}
