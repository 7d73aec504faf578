//! Lists with predicates, all of which are compared with a post at once.

use std::collections::BTreeSet;

use driftline_core::predicate::{Predicate, PredicateSet};
use driftline_store::{search::PostFeatures, social::list_bell::StandingList};

/// Lists with predicates, compiled.
#[derive(Debug, Default)]
pub(crate) struct StandingLists {
    lists: Vec<StandingList>,
    /// The predicates that can be read, each with the index of its list.
    predicates: Vec<(usize, Predicate)>,
    set: PredicateSet,
}

impl StandingLists {
    /// Replaces the lists. They are compiled again only if a list came or went, or has another
    /// predicate: compiling takes longer than reading them, and they change rarely.
    pub(crate) fn update(&mut self, lists: Vec<StandingList>) {
        let predicates = lists.iter().map(|list| &list.predicate);
        let is_same = predicates.eq(self.lists.iter().map(|list| &list.predicate));
        self.lists = lists;
        if is_same {
            return;
        }
        let read = self
            .lists
            .iter()
            .map(|list| Predicate::from_json(&list.predicate));
        // One that cannot be read, of a newer program, keeps no other from being compared.
        let read = read
            .enumerate()
            .filter_map(|(index, read)| Some((index, read.ok()?)));
        self.predicates = read.collect();
        self.set = PredicateSet::new(self.predicates.iter().map(|(_, predicate)| predicate));
    }

    /// Each list with its predicate. Lists are named by their places here.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&StandingList, &Predicate)> {
        let predicates = self.predicates.iter();
        predicates.map(|(list, predicate)| (&self.lists[*list], predicate))
    }

    /// Returns the numbers of the lists that may select a post.
    pub(crate) fn candidates(&self, post: &PostFeatures) -> BTreeSet<usize> {
        post.candidates(&self.set)
    }
}
