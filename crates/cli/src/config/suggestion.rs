//! The key that a misspelled one was meant to be.

use strsim::damerau_levenshtein;

use super::keys;

/// The known key nearest to an unknown one, as `section.key`, or the nearest section.
pub fn key(path: &[&str]) -> Option<&'static str> {
    match path {
        [section] => nearest(section, keys::sections().iter().copied())
            .or_else(|| keys::all().find(|known| last(known) == *section)),
        [section, key] => {
            let is_here = |known: &&str| known.split('.').next() == Some(section);
            let here = keys::all()
                .filter(is_here)
                .map(|known| (last(known), known));
            let of_others = || keys::all().find(|known| last(known) == *key);
            let anywhere = || nearest(&path.join("."), keys::all());
            nearest_of(key, here).or_else(of_others).or_else(anywhere)
        }
        _ => None,
    }
}

/// The known key that a variable was meant to be, whose name after `DRIFTLINE_` has no `__`.
pub fn variable(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let distance = |key: &str| damerau_levenshtein(&key.replace('.', "_"), &name);
    let near = keys::all().map(|key| (distance(key), key)).min()?;
    let allowed = if name.len() < LONG { 1 } else { 2 };
    (near.0 <= allowed).then_some(near.1)
}

fn nearest(written: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    nearest_of(written, known.map(|known| (known, known)))
}

/// Of names with what they stand for: that of the nearest, if a third of it or less differs.
fn nearest_of(
    written: &str,
    known: impl Iterator<Item = (&'static str, &'static str)>,
) -> Option<&'static str> {
    let distances = known.map(|(name, of)| (damerau_levenshtein(name, written), name, of));
    let (distance, name, of) = distances.min()?;
    (distance <= name.len().max(3) / 3).then_some(of)
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Names from this length on may differ in two letters.
const LONG: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_keys_are_recognised() {
        for (path, meant) in [
            (&["server", "lissten"][..], Some("server.listen")),
            (&["sever"], Some("server")),
            (&["defaults", "evry"], Some("defaults.every")),
            (&["sever", "listen"], Some("server.listen")),
            (&["store", "public_url"], Some("server.public_url")),
            (&["listen"], Some("server.listen")),
            (&["server", "colour"], None),
            (&["weather"], None),
        ] {
            assert_eq!(key(path), meant, "{path:?}");
        }
    }

    #[test]
    fn variables_without_the_second_underscore_are_recognised() {
        for (name, meant) in [
            ("STORE_DATABASE_URL", Some("store.database_url")),
            ("SERVER_LISTN", Some("server.listen")),
            ("ID_NODE", Some("id.node")),
            ("OPERATOR", None),
            ("PYTHON", None),
            ("QUIRKS", None),
            ("SEEDS", None),
            ("SOURCE", None),
            ("EVENT_ID", None),
            ("TEST_POSTGRES_URL", None),
            ("SERVER_TOKEN", None),
        ] {
            assert_eq!(variable(name), meant, "{name}");
        }
    }
}
