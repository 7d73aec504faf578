/// Finds what an upstream refuses a batch for: halves it until the culprits stand alone.
///
/// Of a batch of n with k culprits it asks about 2 k log2 n times. Where the quota ends before, the
/// posts that are still under suspicion count one failure more each and stay due as they were, and
/// the next batch that holds them begins with parts of half the size: the search goes on where it
/// ended, in whichever process.
/// Where everything is refused, the upstream is to blame and not the posts: see
/// [`Bisection::is_outage`]. Whoever met that before begins with a probe: see
/// [`Bisection::with_probe`].
#[derive(Debug, Clone)]
pub struct Bisection<T> {
    /// What is still to be asked for, the next part last.
    open: Vec<Part<T>>,
    culprits: Vec<T>,
    accepted: u32,
    /// How many culprits there were when something was accepted last.
    proven: usize,
    doubt: Doubt,
    probe: Probe,
}

/// Posts that are asked for before the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// None are.
    None,
    /// They are asked for next.
    RequestContext,
    /// They were refused.
    Refused,
}

/// Whether the upstream itself may be at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// Nothing speaks for it.
    None,
    /// The largest part that is left is asked for next, to notify.
    RequestContext,
    /// That was refused as well.
    Confirmed,
}

#[derive(Debug, Clone)]
struct Part<T> {
    posts: Vec<T>,
    /// Whether it is a part of something that was refused.
    is_suspect: bool,
}

/// What a [`Bisection`] came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict<T> {
    /// What was refused alone.
    pub culprits: Vec<T>,
    /// What was refused together with others, and is not cleared.
    pub suspects: Vec<T>,
    /// What was not asked for.
    pub unasked: Vec<T>,
}

impl<T> Bisection<T> {
    /// Begins with a batch that has not been asked for yet. Posts whose look-ups failed before, as
    /// often in a row as `failures` says, are asked for apart from the others, in parts that halve
    /// with each failure. The part of the batch's first post comes first: where quota ends between
    /// two, the other is first the next time.
    pub fn new(batch: Vec<T>, failures: impl Fn(&T) -> u32) -> Self {
        let size = batch.len();
        Self::of(batch, size, failures)
    }

    /// Begins with posts of a batch of that size.
    fn of(posts: Vec<T>, size: usize, failures: impl Fn(&T) -> u32) -> Self {
        let mut parts: Vec<(u32, Vec<T>)> = Vec::new();
        for post in posts {
            let failed = failures(&post);
            let most = part_size(size, failed);
            let fits = |(of, part): &&mut (u32, Vec<T>)| *of == failed && part.len() < most;
            match parts.iter_mut().find(fits) {
                Some((_, part)) => part.push(post),
                None => parts.push((failed, vec![post])),
            }
        }
        let part = |(_, posts)| Part {
            posts,
            is_suspect: false,
        };
        Self {
            open: parts.into_iter().rev().map(part).collect(),
            culprits: Vec::new(),
            accepted: 0,
            proven: 0,
            doubt: Doubt::None,
            probe: Probe::None,
        }
    }

    /// As [`Bisection::new`], for an upstream that has answered nothing of late: the posts that
    /// failed least, the first `most` of these that a part holds, are asked for before all others.
    /// If they are refused, the upstream seems to be down, and nothing more is to be asked; but a
    /// post that was asked for alone takes the blame, and makes room for another probe. So whatever
    /// stands at the head of the schedule, upstream and posts are told from one another in the end,
    /// and an outage costs one post's timeout a turn.
    pub fn with_probe(batch: Vec<T>, failures: impl Fn(&T) -> u32, most: usize) -> Self {
        let Some(least) = batch.iter().map(&failures).min() else {
            return Self::new(batch, failures);
        };
        let most = most.min(part_size(batch.len(), least));
        let (mut posts, mut others) = (Vec::new(), Vec::new());
        let size = batch.len();
        for post in batch {
            if posts.len() < most && failures(&post) == least {
                posts.push(post);
            } else {
                others.push(post);
            }
        }
        let mut bisection = Self::of(others, size, failures);
        let is_suspect = false;
        bisection.open.push(Part { posts, is_suspect });
        bisection.probe = Probe::RequestContext;
        bisection
    }

    /// The part to ask for next; `None` when nothing is left.
    pub fn part(&self) -> Option<&[T]> {
        self.open.last().map(|part| part.posts.as_slice())
    }

    /// The part was answered; returns it.
    pub fn accepted(&mut self) -> Vec<T> {
        self.accepted = self.accepted.saturating_add(1);
        self.proven = self.culprits.len();
        self.doubt = Doubt::None;
        self.probe = Probe::None;
        self.open.pop().map_or_else(Vec::new, |part| part.posts)
    }

    /// The part was refused: it is halved, or it is a culprit.
    pub fn refused(&mut self) {
        let Some(Part { mut posts, .. }) = self.open.pop() else {
            return;
        };
        if self.doubt == Doubt::RequestContext {
            self.doubt = Doubt::Confirmed;
        }
        if self.probe == Probe::RequestContext {
            self.probe = Probe::Refused;
        }
        if posts.len() == 1 {
            self.culprits.append(&mut posts);
            self.doubt_upstream();
            return;
        }
        let second = posts.split_off(posts.len() / 2);
        for posts in [second, posts] {
            let is_suspect = true;
            self.open.push(Part { posts, is_suspect });
        }
    }

    /// Whether so much was refused, and nothing accepted since, that the upstream itself is at
    /// fault: two posts alone, and the largest part of the rest.
    pub fn is_outage(&self) -> bool {
        let is_all = self.accepted == 0 && self.open.is_empty();
        let is_told = self.doubt == Doubt::Confirmed || is_all;
        self.culprits.len() - self.proven >= 2 && is_told
    }

    /// Whether the probe was refused: the upstream is thought to be down.
    pub fn is_probe_refused(&self) -> bool {
        self.probe == Probe::Refused && self.accepted == 0
    }

    /// Two culprits and no answer since: the largest part that is left will notify whose fault it is.
    fn doubt_upstream(&mut self) {
        if self.culprits.len() - self.proven != 2 {
            return;
        }
        let sizes = self.open.iter().map(|part| part.posts.len()).enumerate();
        if let Some((largest, _)) = sizes.max_by_key(|(_, size)| *size) {
            let part = self.open.remove(largest);
            self.open.push(part);
            self.doubt = Doubt::RequestContext;
        }
    }

    /// Whether anything was answered.
    pub fn has_answers(&self) -> bool {
        self.accepted > 0
    }

    /// How many posts were refused alone.
    pub fn culprits(&self) -> usize {
        self.culprits.len()
    }

    /// Ends it where the upstream is thought to be at fault: only what was refused before something
    /// was accepted is surely a culprit. One more is taken for one, so that it makes room.
    pub fn end_in_outage(mut self) -> Verdict<T> {
        let kept = self.culprits.len().min(self.proven + 1);
        let mut unasked = self.culprits.split_off(kept);
        unasked.extend(self.open.into_iter().flat_map(|part| part.posts));
        Verdict {
            culprits: self.culprits,
            suspects: Vec::new(),
            unasked,
        }
    }

    /// Ends it.
    pub fn end(self) -> Verdict<T> {
        let mut verdict = Verdict {
            culprits: self.culprits,
            suspects: Vec::new(),
            unasked: Vec::new(),
        };
        for part in self.open {
            if part.is_suspect {
                verdict.suspects.extend(part.posts);
            } else {
                verdict.unasked.extend(part.posts);
            }
        }
        verdict
    }
}

/// How many posts are asked for at once that failed so often, of a batch of that size.
fn part_size(size: usize, failed: u32) -> usize {
    (size >> failed.min(u32::BITS - 1)).max(1)
}
