//! A model of a replica of a source, as one kind of reader has it.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::{names::audience::Reader, post::Visibility};
use driftline_store::{
    sync::{
        SourceChunk, SourceEntry, SourceLimits, count_shown_entries, has_news, held_after,
        source_changes, source_newest, source_update_count,
    },
    timeline::{TimelinePost, Viewer},
    viewer::LazyReadableSources,
};

use crate::world::{ANN, BOB, World};

/// A viewer, and what it is to the sources of these tests, which ANN owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceReader {
    pub(super) viewer: Viewer,
    pub(super) reader: Reader,
}

pub(super) const OWNER: SourceReader = SourceReader {
    viewer: Viewer::Account(ANN),
    reader: Reader::Owner,
};
pub(super) const MEMBER: SourceReader = SourceReader {
    viewer: Viewer::Account(BOB),
    reader: Reader::Member,
};
pub(super) const WORLD: SourceReader = SourceReader {
    viewer: Viewer::Anonymous,
    reader: Reader::World,
};

impl SourceReader {
    /// The number of entries that the server counts for it.
    pub(super) fn count(self, world: &World) -> u64 {
        let source = world.source;
        let (shown, last) = world.read(move |tx| {
            let sources = LazyReadableSources::new(self.viewer);
            count_shown_entries(tx, source, &sources, None)
        });
        assert_eq!(last, None);
        shown
    }

    /// The posts of the source's timeline, by keys.
    pub(super) fn shown(self, world: &World) -> BTreeMap<String, TimelinePost> {
        let posts = world.timeline_for(self.viewer).into_iter();
        posts
            .map(|post| (post.uri.clone().expect("a name"), post))
            .collect()
    }
}

/// The posts of which a replica has the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    All,
    /// Those whose text ends with this.
    EndsWith(char),
    Of(Visibility),
}

impl Filter {
    pub(super) fn matches(self, post: &TimelinePost) -> bool {
        match self {
            Filter::All => true,
            Filter::EndsWith(end) => {
                let status: serde_json::Value = serde_json::from_str(&post.raw).expect("JSON");
                let text = status["content"].as_str().expect("a text");
                text.ends_with(end)
            }
            Filter::Of(visibility) => post.visibility == visibility,
        }
    }
}

/// The progress of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a full sync that began at `top`.
    Full { top: i64, below: i64 },
    /// At a USN.
    At(i64),
}

/// A replica that applies chunks as they come.
#[derive(Clone, Debug)]
pub(super) struct Replica {
    pub(super) by: SourceReader,
    pub(super) filter: Filter,
    pub(super) posts: BTreeMap<String, TimelinePost>,
    /// The keys that have come since the last full sync began.
    seen: BTreeSet<String>,
    state: State,
    /// The USN at which it was last complete.
    pub(super) held: Option<i64>,
}

impl Replica {
    /// An empty replica that follows changes from the first.
    pub(super) fn from_start(by: SourceReader) -> Replica {
        Replica {
            by,
            filter: Filter::All,
            posts: BTreeMap::new(),
            seen: BTreeSet::new(),
            state: State::At(0),
            held: None,
        }
    }

    /// An empty replica that begins a full sync now.
    pub(super) fn begin_full(world: &World, by: SourceReader) -> Replica {
        let mut replica = Replica::from_start(by);
        replica.change_filter(world, Filter::All);
        replica
    }

    /// Begins a full sync with another filter. The posts stay until its end.
    pub(super) fn change_filter(&mut self, world: &World, filter: Filter) {
        let key = world.source;
        let top = world.read(move |tx| source_update_count(tx, key));
        self.filter = filter;
        self.seen.clear();
        self.held = None;
        self.state = State::Full {
            top,
            below: i64::MAX,
        };
    }

    /// The posts that it has to have.
    pub(super) fn expected(&self, world: &World) -> BTreeMap<String, TimelinePost> {
        let mut shown = self.by.shown(world);
        shown.retain(|_, post| self.filter.matches(post));
        shown
    }

    /// A replica that has all that its reader is shown now.
    pub(super) fn complete(world: &World, by: SourceReader) -> Replica {
        let mut replica = Replica::begin_full(world, by);
        replica.catch_up(world, SourceLimits::new(100));
        replica
    }

    /// True if it gets the update of an entry alone, since it has the rest.
    pub(super) fn has_content(&self, entry: &SourceEntry) -> bool {
        self.held.is_some_and(|held| entry.is_content_held(held))
    }

    /// Takes one chunk. Returns it.
    pub(super) fn pull(&mut self, world: &World, limits: SourceLimits) -> SourceChunk {
        let (source, viewer, filter) = (world.source, self.by.viewer, self.filter);
        let is_match = move |post: &TimelinePost| filter.matches(post);
        let mut is_swept = false;
        let chunk = match self.state {
            State::Full { top, below } => {
                let chunk = world.read(move |tx| {
                    let sources = LazyReadableSources::new(viewer);
                    let filter = (filter != Filter::All)
                        .then_some(&is_match as &dyn Fn(&TimelinePost) -> bool);
                    source_newest(tx, source, &sources, filter, top, below, limits)
                });
                let usns: Vec<i64> = chunk.entries.iter().map(|entry| entry.usn).collect();
                assert!(usns.is_sorted_by(|one, next| one > next), "{usns:?}");
                let is_within = |usn: &i64| *usn >= chunk.end && *usn < below && *usn <= top;
                assert!(usns.iter().all(is_within), "{usns:?}");
                assert!(chunk.end < below && chunk.gone.is_empty(), "{chunk:?}");
                is_swept = !chunk.more;
                self.state = match chunk.more {
                    true => State::Full {
                        top,
                        below: chunk.end,
                    },
                    false => State::At(top),
                };
                chunk
            }
            State::At(after) => {
                let chunk = world.read(move |tx| {
                    let sources = LazyReadableSources::new(viewer);
                    let filter = (filter != Filter::All)
                        .then_some(&is_match as &dyn Fn(&TimelinePost) -> bool);
                    source_changes(tx, source, &sources, filter, after, limits)
                });
                let entries = chunk.entries.iter().map(|entry| entry.usn);
                let gone = chunk.gone.iter().map(|tombstone| tombstone.usn);
                for usns in [entries.collect::<Vec<_>>(), gone.collect()] {
                    assert!(usns.is_sorted_by(|one, next| one < next), "{usns:?}");
                    let is_within = |usn: &i64| *usn > after && *usn <= chunk.end;
                    assert!(usns.iter().all(is_within), "{usns:?}");
                }
                assert!(!chunk.more || chunk.end > after, "{chunk:?}");
                self.state = State::At(chunk.end);
                chunk
            }
        };
        assert!(chunk.entries.len() + chunk.gone.len() <= limits.entries as usize);
        // As devices do, which see no USNs.
        for tombstone in &chunk.gone {
            self.posts.remove(&tombstone.key);
        }
        for entry in &chunk.entries {
            assert_eq!(entry.place, entry.post.id);
            assert!(self.filter.matches(&entry.post), "{entry:?}");
            if self.has_content(entry) {
                let own = self.posts.get(&entry.key).map(|own| (own.id, &own.raw));
                assert_eq!(own, Some((entry.place, &entry.post.raw)), "{entry:?}");
            }
            self.posts.insert(entry.key.clone(), entry.post.clone());
            self.seen.insert(entry.key.clone());
        }
        if is_swept {
            self.posts.retain(|key, _| self.seen.contains(key));
        }
        self.held = match self.state {
            State::Full { top, .. } => held_after(None, top, true),
            State::At(top) if is_swept => held_after(None, top, self.has_news(world)),
            State::At(end) => held_after(self.held, end, chunk.more),
        };
        chunk
    }

    /// Takes chunks until there are no more. Returns those of changes.
    pub(super) fn catch_up(&mut self, world: &World, limits: SourceLimits) -> Vec<SourceChunk> {
        let mut chunks = Vec::new();
        loop {
            let is_full = matches!(self.state, State::Full { .. });
            let chunk = self.pull(world, limits);
            let more = chunk.more || is_full;
            if !is_full {
                chunks.push(chunk);
            }
            if !more {
                return chunks;
            }
        }
    }

    /// True if there is news for it.
    pub(super) fn has_news(&self, world: &World) -> bool {
        let State::At(after) = self.state else {
            return true;
        };
        let (source, viewer) = (world.source, self.by.viewer);
        world.read(move |tx| has_news(tx, source, &LazyReadableSources::new(viewer), after))
    }
}
