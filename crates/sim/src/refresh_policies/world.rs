/// Posts and the times at which their counts changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    posts: Vec<Span>,
    changes: Vec<Change>,
}

/// A post's history.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// When it was created, Unix ms.
    pub created_at_ms: i64,
    /// When it was first stored, Unix ms.
    pub first_stored_ms: i64,
    /// When its engagement changed, Unix ms, and by how much.
    pub changes: Vec<(i64, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    pub(super) created_at_ms: i64,
    pub(super) first_stored_ms: i64,
    changes: (usize, usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Change {
    at_ms: i64,
    by: f32,
}

impl World {
    /// A world of these posts.
    pub fn new(histories: impl IntoIterator<Item = History>) -> Self {
        let mut world = Self::default();
        for mut history in histories {
            history.changes.sort_unstable_by_key(|change| change.0);
            let from = world.changes.len();
            let changes = history.changes.iter();
            world.changes.extend(changes.map(|&(at_ms, by)| Change {
                at_ms,
                by: by as f32,
            }));
            world.posts.push(Span {
                created_at_ms: history.created_at_ms,
                first_stored_ms: history.first_stored_ms,
                changes: (from, world.changes.len()),
            });
        }
        world.posts.sort_by_key(|post| post.first_stored_ms);
        world
    }

    /// How many posts it has.
    pub fn len(&self) -> usize {
        self.posts.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.posts.is_empty()
    }

    /// How many changes all its posts have.
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// By when they were first stored.
    pub(super) fn posts(&self) -> &[Span] {
        &self.posts
    }
}

/// A forward-only reader of one post's history.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistoryReader {
    next: usize,
    end: usize,
    at_ms: i64,
    true_total: f64,
    stored_total: f64,
}

impl HistoryReader {
    /// A reader that starts when the post is first stored.
    pub(super) fn new(world: &World, post: &Span) -> Self {
        let mut reader = Self {
            next: post.changes.0,
            end: post.changes.1,
            at_ms: post.first_stored_ms,
            true_total: 0.0,
            stored_total: 0.0,
        };
        reader.unseen_ms_until(world, post.first_stored_ms);
        reader.look();
        reader
    }

    /// Advances to that time, and returns the change that went unseen, weighted by its time, ms.
    pub(super) fn unseen_ms_until(&mut self, world: &World, until_ms: i64) -> f64 {
        let mut unseen = 0.0;
        let changes = &world.changes[self.next..self.end];
        let passed = changes.iter().take_while(|change| change.at_ms <= until_ms);
        for change in passed {
            let at_ms = change.at_ms.max(self.at_ms);
            unseen += (self.true_total - self.stored_total).abs() * (at_ms - self.at_ms) as f64;
            self.at_ms = at_ms;
            self.true_total += f64::from(change.by);
            self.next += 1;
        }
        let rest_ms = (until_ms - self.at_ms).max(0) as f64;
        self.at_ms = self.at_ms.max(until_ms);
        unseen + (self.true_total - self.stored_total).abs() * rest_ms
    }

    /// Stores the true total, and returns it.
    pub(super) fn look(&mut self) -> f64 {
        self.stored_total = self.true_total;
        self.true_total
    }
}
