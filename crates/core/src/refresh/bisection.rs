/// Finds the posts for which an upstream refuses a batch, by halving it until they are alone.
///
/// A batch of n posts with k culprits takes about 2 k log2 n requests. Where the quota ends earlier,
/// each remaining suspect counts one more failure and stays due as before, and the next batch that
/// holds it begins with parts of half the size: the search continues where it ended, in any process.
/// Where everything is refused, the upstream is at fault and not the posts: see
/// [`Bisection::is_outage`]. After an earlier outage it begins with a probe: see
/// [`Bisection::with_probe`].
#[derive(Debug, Clone)]
pub struct Bisection<T> {
    /// The parts still to be requested, the next one last.
    open: Vec<Part<T>>,
    culprits: Vec<T>,
    accepted: u32,
    /// How many culprits there were at the last accepted part.
    proven: usize,
    outage_check: OutageCheck,
    probe: Probe,
}

/// The state of the probe, posts that are requested before the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// There is none.
    None,
    /// It is the next part.
    Pending,
    /// It was refused.
    Refused,
}

/// Whether the upstream itself may be at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutageCheck {
    /// Nothing suggests it.
    None,
    /// The largest remaining part is requested next, to find out.
    Pending,
    /// That part was refused as well.
    Confirmed,
}

#[derive(Debug, Clone)]
struct Part<T> {
    posts: Vec<T>,
    /// Whether it is part of a refused batch.
    is_suspect: bool,
}

/// The result of a [`Bisection`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict<T> {
    /// Posts that were refused alone.
    pub culprits: Vec<T>,
    /// Posts that were refused with others and not cleared since.
    pub suspects: Vec<T>,
    /// Posts that were not requested.
    pub unasked: Vec<T>,
}

impl<T> Bisection<T> {
    /// Begins with a batch. Posts whose last look-ups failed, `failures` times in a row, are requested
    /// apart from the others, in parts that halve with each failure. The part of the batch's first
    /// post comes first: if the quota ends between two parts, the other is first the next time.
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
            outage_check: OutageCheck::None,
            probe: Probe::None,
        }
    }

    /// As [`Bisection::new`], for an upstream without recent answers: the posts that failed least,
    /// up to `most` of them and at most one part, are requested before all others. If they are
    /// refused, the upstream seems to be down, and no more requests are made; but a post that was
    /// requested alone counts as a culprit and makes room for another probe. So any schedule
    /// distinguishes upstream and posts in the end, and an outage costs one post's timeout a turn.
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
        bisection.probe = Probe::Pending;
        bisection
    }

    /// The next part to request; `None` when nothing is left.
    pub fn part(&self) -> Option<&[T]> {
        self.open.last().map(|part| part.posts.as_slice())
    }

    /// The part was answered; returns it.
    pub fn accepted(&mut self) -> Vec<T> {
        self.accepted = self.accepted.saturating_add(1);
        self.proven = self.culprits.len();
        self.outage_check = OutageCheck::None;
        self.probe = Probe::None;
        self.open.pop().map_or_else(Vec::new, |part| part.posts)
    }

    /// The part was refused: it is halved, or a single post is a culprit.
    pub fn refused(&mut self) {
        let Some(Part { mut posts, .. }) = self.open.pop() else {
            return;
        };
        if self.outage_check == OutageCheck::Pending {
            self.outage_check = OutageCheck::Confirmed;
        }
        if self.probe == Probe::Pending {
            self.probe = Probe::Refused;
        }
        if posts.len() == 1 {
            self.culprits.append(&mut posts);
            self.check_for_outage();
            return;
        }
        let second = posts.split_off(posts.len() / 2);
        for posts in [second, posts] {
            let is_suspect = true;
            self.open.push(Part { posts, is_suspect });
        }
    }

    /// Whether so much was refused, with nothing accepted since, that the upstream itself is at
    /// fault: two single posts and the largest part of the rest.
    pub fn is_outage(&self) -> bool {
        let is_all = self.accepted == 0 && self.open.is_empty();
        let is_confirmed = self.outage_check == OutageCheck::Confirmed || is_all;
        self.culprits.len() - self.proven >= 2 && is_confirmed
    }

    /// Whether the probe was refused: the upstream is thought to be down.
    pub fn is_probe_refused(&self) -> bool {
        self.probe == Probe::Refused && self.accepted == 0
    }

    /// After two culprits without an answer since, the largest remaining part decides whether the
    /// upstream is at fault.
    fn check_for_outage(&mut self) {
        if self.culprits.len() - self.proven != 2 {
            return;
        }
        let sizes = self.open.iter().map(|part| part.posts.len()).enumerate();
        if let Some((largest, _)) = sizes.max_by_key(|(_, size)| *size) {
            let part = self.open.remove(largest);
            self.open.push(part);
            self.outage_check = OutageCheck::Pending;
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

    /// Ends it where the upstream is thought to be at fault: only posts refused before the last
    /// accepted part are surely culprits. One more counts as a culprit, so that it makes room.
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

/// The size of a part of posts that failed so often, in a batch of that size.
fn part_size(size: usize, failed: u32) -> usize {
    (size >> failed.min(u32::BITS - 1)).max(1)
}
