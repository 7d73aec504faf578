//! Which tokens go on below which posts of a list.

use std::collections::{BTreeMap, VecDeque};

use driftline_core::upstream_id::{Key, UpstreamId};

/// The tokens of the pages that were answered, by the oldest ID of each; a
/// bounded number, of which the oldest go first.
#[derive(Debug, Default)]
pub(super) struct Depths {
    tokens: BTreeMap<Place, String>,
    order: VecDeque<Place>,
}

impl Depths {
    /// The token that leads to everything below a bound on the shortest way,
    /// with the ID below which it goes on.
    pub(super) fn nearest(&self, list: &UpstreamId, below: &Key) -> Option<(Key, String)> {
        let mut tokens = self.tokens.range(place(list, below)..);
        let ((of, after), token) = tokens.next()?;
        (of == list.as_str()).then(|| (after.clone(), token.clone()))
    }

    /// Remembers the token that goes on below a page's oldest ID.
    pub(super) fn remember(&mut self, list: &UpstreamId, oldest: &Key, token: &str) {
        let at = place(list, oldest);
        if self.tokens.insert(at.clone(), token.to_owned()).is_none() {
            self.order.push_back(at);
        }
        if self.order.len() > MAX_TOKENS
            && let Some(oldest) = self.order.pop_front()
        {
            self.tokens.remove(&oldest);
        }
    }

    /// Forgets a token that the server no longer knows.
    pub(super) fn forget(&mut self, list: &UpstreamId, after: &Key) {
        let at = place(list, after);
        self.order.retain(|other| *other != at);
        self.tokens.remove(&at);
    }
}

/// A list's ID, and an ID in the list.
type Place = (String, Key);

fn place(list: &UpstreamId, key: &Key) -> Place {
    (list.to_string(), key.clone())
}

const MAX_TOKENS: usize = 1024;

#[cfg(test)]
mod tests {
    use driftline_core::upstream_id::IdOrder;

    use super::*;

    fn key(id: usize) -> Key {
        let id = UpstreamId::new(id.to_string());
        IdOrder::Numeric.key(&id).expect("a number")
    }

    #[test]
    fn the_nearest_token_from_above_is_taken() {
        let list = UpstreamId::from("1");
        let mut depths = Depths::default();
        for id in [9, 100, 50] {
            depths.remember(&list, &key(id), &format!("t{id}"));
        }
        let nearest = |depths: &Depths, below| depths.nearest(&list, &key(below)).map(|(_, t)| t);
        assert_eq!(nearest(&depths, 101), None);
        assert_eq!(nearest(&depths, 100), Some("t100".to_owned()));
        assert_eq!(nearest(&depths, 51), Some("t100".to_owned()));
        assert_eq!(nearest(&depths, 10), Some("t50".to_owned()));
        assert_eq!(nearest(&depths, 8), Some("t9".to_owned()));
        assert_eq!(depths.nearest(&"2".into(), &key(8)), None);
        depths.forget(&list, &key(9));
        assert_eq!(nearest(&depths, 8), Some("t50".to_owned()));
    }

    #[test]
    fn the_oldest_tokens_go_first() {
        let mut depths = Depths::default();
        for id in 0..MAX_TOKENS + 2 {
            depths.remember(&"1".into(), &key(id), "t");
            depths.remember(&"1".into(), &key(id), "t");
        }
        assert_eq!(depths.order.len(), MAX_TOKENS);
        assert_eq!(depths.tokens.len(), MAX_TOKENS);
        let (lowest, _) = depths.nearest(&"1".into(), &Key::lowest()).expect("many");
        assert_eq!(lowest, key(2));
    }
}
