use crate::answer::FailureKind;

/// Looks up the posts of a claim, and finds those that make requests fail by halving.
///
/// Posts whose last look-ups failed are requested separately from the others, in parts that halve
/// with each failure. The search therefore survives claims and processes, even with a quota of few
/// requests. A part that fails is halved in turn, until failing posts are alone.
///
/// A few consecutive failures end the search, because the upstream may be down. Two are enough if
/// nothing was answered before. After a turn without an answer one is enough, and at most one post
/// is blamed. An outage therefore costs the timeout of one post per turn, and no post stays at the
/// head of a schedule for ever.
#[derive(Debug, Clone)]
pub struct Bisection<T> {
    /// The parts to request, the next one last.
    open: Vec<Part<T>>,
    /// Posts that failed alone.
    culprits: Vec<(T, FailureKind)>,
    has_answers: bool,
    /// True if every failure so far was a 403.
    is_forbidden: bool,
    /// The number of further consecutive failures that end the search.
    tolerated: u32,
    is_after_silence: bool,
}

#[derive(Debug, Clone)]
struct Part<T> {
    posts: Vec<T>,
    /// True if it is part of a failed request.
    is_suspect: bool,
}

/// The posts without an answer, by cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blame<T> {
    /// Posts that got no usable answer when they were requested alone.
    pub failed: Vec<T>,
    /// Posts that got a 403 when they were requested alone. They are hidden, or the credential is
    /// rejected.
    pub forbidden: Vec<T>,
    /// Posts that were requested with others. One of them may be at fault.
    pub suspects: Vec<T>,
    /// True if some posts are left without blame. They stay due as before.
    pub is_cut_short: bool,
}

impl<T> Bisection<T> {
    /// Starts with a batch of posts and their consecutive failures. The part with the batch's first
    /// post comes first. If the quota ends between two parts, the other is first the next time.
    /// After a turn without an answer (`is_after_silence`), a post with the fewest failures is
    /// requested alone before all others.
    pub fn new(mut batch: Vec<T>, failures: impl Fn(&T) -> u32, is_after_silence: bool) -> Self {
        let size = batch.len();
        let least = batch
            .iter()
            .enumerate()
            .min_by_key(|(_, post)| failures(post));
        let probe = least
            .map(|(at, _)| at)
            .filter(|_| is_after_silence)
            .map(|at| vec![batch.remove(at)]);
        let mut parts: Vec<(u32, Vec<T>)> = Vec::new();
        for post in batch {
            let failed = failures(&post);
            let most = (size >> failed.min(u32::BITS - 1)).max(1);
            let fits = |(of, part): &&mut (u32, Vec<T>)| *of == failed && part.len() < most;
            match parts.iter_mut().find(fits) {
                Some((_, part)) => part.push(post),
                None => parts.push((failed, vec![post])),
            }
        }
        let parts = parts.into_iter().map(|(_, posts)| posts);
        let part = |posts| Part {
            posts,
            is_suspect: false,
        };
        let mut open: Vec<Part<T>> = probe.into_iter().chain(parts).map(part).collect();
        open.reverse();
        Self {
            open,
            culprits: Vec::new(),
            has_answers: false,
            is_forbidden: true,
            tolerated: if is_after_silence { 1 } else { 2 },
            is_after_silence,
        }
    }

    /// The next part to request; `None` if no part is left, or the upstream seems to be down.
    pub fn part(&self) -> Option<&[T]> {
        let next = self.open.last().filter(|_| self.tolerated > 0);
        next.map(|part| part.posts.as_slice())
    }

    /// Records that the part was answered; returns it.
    pub fn answered(&mut self) -> Vec<T> {
        self.has_answers = true;
        self.tolerated = TOLERATED_AFTER_ANSWER;
        self.open.pop().map_or_else(Vec::new, |part| part.posts)
    }

    /// Records that the request for the part failed.
    pub fn failed(&mut self, kind: FailureKind) {
        self.is_forbidden &= kind == FailureKind::Forbidden;
        if !may_blame_posts(kind) {
            self.tolerated = 0;
            return;
        }
        let Some(Part { mut posts, .. }) = self.open.pop() else {
            return;
        };
        let is_alone = posts.len() == 1;
        if is_alone {
            self.culprits.extend(posts.pop().map(|post| (post, kind)));
        } else {
            let second = posts.split_off(posts.len() / 2);
            let is_suspect = true;
            let halves = [second, posts].map(|posts| Part { posts, is_suspect });
            self.open.extend(halves);
        }
        // A rejected batch is halved at once, because the upstream works. A request that cannot be
        // sent does not show the upstream's state.
        let may_be_down = is_alone || (is_silence(kind) && !self.has_answers);
        if may_be_down && kind != FailureKind::BadId {
            self.tolerated = self.tolerated.saturating_sub(1);
        }
    }

    /// True if any request was answered.
    pub fn has_answers(&self) -> bool {
        self.has_answers
    }

    /// True if all requests got a 403.
    pub fn is_forbidden(&self) -> bool {
        !self.has_answers && self.is_forbidden
    }

    /// Ends the search, even if posts are left without an answer.
    pub fn end(mut self) -> Blame<T> {
        let mut blame = Blame {
            failed: Vec::new(),
            forbidden: Vec::new(),
            suspects: Vec::new(),
            is_cut_short: !self.open.is_empty(),
        };
        let mut is_blamed = false;
        let (has_answers, is_unsent) = (self.has_answers, |kind| kind == FailureKind::BadId);
        self.culprits.retain(|(_, kind)| {
            has_answers || is_unsent(*kind) || !std::mem::replace(&mut is_blamed, true)
        });
        for (post, kind) in self.culprits {
            match kind {
                FailureKind::Forbidden => blame.forbidden.push(post),
                _ => blame.failed.push(post),
            }
        }
        // After silence, the state of posts that were requested together is unknown.
        if self.has_answers || !self.is_after_silence {
            let suspects = self.open.into_iter().filter(|part| part.is_suspect);
            blame.suspects = suspects.flat_map(|part| part.posts).collect();
        }
        blame
    }
}

/// The number of posts that may fail alone in a row after an answer, before the upstream may be
/// down.
const TOLERATED_AFTER_ANSWER: u32 = 3;

/// True if a failure may be the fault of a requested post.
pub fn may_blame_posts(kind: FailureKind) -> bool {
    !matches!(
        kind,
        FailureKind::Tls
            | FailureKind::PrivateAddress
            | FailureKind::Unauthorized
            | FailureKind::NotFound
            | FailureKind::Throttled
            | FailureKind::Capped
            | FailureKind::WrongOrder
    )
}

/// True if the upstream gave no complete answer, or failed itself.
fn is_silence(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::TimedOut
            | FailureKind::Truncated
            | FailureKind::Unreachable
            | FailureKind::ServerError
    )
}
