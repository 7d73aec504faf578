use super::bisection::Bisection;
use crate::answer::FailureKind;

/// Looks up the posts of a claim and attributes failures: to a post, the upstream or the
/// credential.
///
/// [`Search::next`] gives the next request, the caller reports its result, and [`Search::end`]
/// classifies the posts without an answer. Halving a refused batch ([`Bisection`]) finds the posts
/// at fault; a *canary*, another post that the upstream is known to answer, distinguishes them from
/// an outage.
///
/// Whatever the cause, at least one of four failing turns in a row makes progress: a post has failed
/// and is due later, or its part is smaller the next time. So no post stays at the head of a
/// schedule for ever, and an outage costs at most one post's timeout a turn.
#[derive(Debug, Clone)]
pub struct Search<T> {
    bisection: Bisection<T>,
    status: UpstreamStatus,
    state: State,
    /// The last failure.
    failed: Option<FailureKind>,
    /// Which of the culprits were refused with 403, by index.
    forbidden: Vec<usize>,
    is_canary_answered: bool,
}

/// The next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next<'a, T> {
    /// These posts.
    Posts(&'a [T]),
    /// A post that was not in the last request; see [`Search::canary_checked`].
    Canary,
    /// Nothing more.
    Nothing,
}

/// The result of a canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CanaryResult {
    /// It was answered: the upstream works.
    Answered,
    /// It was not answered.
    Failed(FailureKind),
    /// It was not requested: no canary, quota or time was available.
    Unasked,
}

/// The posts without an answer, by cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blame<T> {
    /// Posts that exist but are hidden from this credential.
    pub hidden: Vec<T>,
    /// Posts that failed: requested alone, they got no usable answer.
    pub failed: Vec<T>,
    /// Posts that were requested with others, one of which may be at fault.
    pub suspects: Vec<T>,
    /// Whether some posts are left without blame: they stay due as before.
    pub is_cut_short: bool,
}

/// What is known of the upstream and the credential, apart from the requested posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpstreamStatus {
    /// Nothing yet.
    Unknown,
    /// It answered another request: a failure is the fault of a post.
    Works,
    /// It did not answer another request.
    Down,
    /// The upstream rejects the credential.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Posts are requested as long as any are left.
    Asking,
    /// A canary checks whether the last failure is the posts' fault.
    CheckingCause,
    /// So much has failed that a canary checks whether the upstream is down.
    CheckingOutage,
    /// No more requests.
    Over,
}

/// The party at fault for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The upstream or the credential: no more requests.
    Upstream,
    /// A post, unless everything fails.
    Posts,
    /// A post, if anything else is answered; else the upstream or the credential.
    Unclear,
}

impl<T> Search<T> {
    /// Begins with a batch of posts and their consecutive failures. If the upstream was `silent`
    /// for two turns, the first request holds the posts that failed least, as many as fit; after
    /// three turns, one of them.
    pub fn new(batch: Vec<T>, failures: impl Fn(&T) -> u32, silent: u32) -> Self {
        let most = batch.len();
        Self {
            bisection: match silent {
                0 | 1 => Bisection::new(batch, failures),
                2 => Bisection::with_probe(batch, failures, most),
                _ => Bisection::with_probe(batch, failures, 1),
            },
            status: UpstreamStatus::Unknown,
            state: State::Asking,
            failed: None,
            forbidden: Vec::new(),
            is_canary_answered: false,
        }
    }

    /// The next request.
    pub fn next(&self) -> Next<'_, T> {
        match self.state {
            State::Asking => self.bisection.part().map_or(Next::Nothing, Next::Posts),
            State::CheckingCause | State::CheckingOutage => Next::Canary,
            State::Over => Next::Nothing,
        }
    }

    /// The requested posts were answered; returns them.
    pub fn answered(&mut self) -> Vec<T> {
        self.bisection.accepted()
    }

    /// The request for posts failed.
    pub fn failed(&mut self, kind: FailureKind) {
        self.failed = Some(kind);
        match fault(kind) {
            Fault::Upstream => self.state = State::Over,
            Fault::Unclear if !self.is_known_to_work() && !self.is_canary_answered => {
                self.state = State::CheckingCause;
            }
            Fault::Posts | Fault::Unclear => self.refused(kind),
        }
    }

    /// A canary was requested, or could not be.
    pub fn canary_checked(&mut self, result: CanaryResult) {
        let kind = self.failed.unwrap_or(FailureKind::ServerError);
        self.is_canary_answered = true;
        self.status = match result {
            CanaryResult::Answered => UpstreamStatus::Works,
            CanaryResult::Failed(other) if kind == FailureKind::Forbidden && is_refusal(other) => {
                UpstreamStatus::Refused
            }
            CanaryResult::Failed(_) => UpstreamStatus::Down,
            CanaryResult::Unasked => self.status,
        };
        match (self.state, self.status) {
            (_, UpstreamStatus::Refused) => self.state = State::Over,
            (State::CheckingCause, UpstreamStatus::Down) => {
                // A single post may cause the timeout: it makes room for others.
                if self.bisection.part().is_some_and(|part| part.len() == 1) {
                    self.bisection.refused();
                }
                self.state = State::Over;
            }
            (State::CheckingCause, _) => {
                self.state = State::Asking;
                self.refused(kind);
            }
            (_, UpstreamStatus::Works) => self.state = State::Asking,
            _ => self.state = State::Over,
        }
    }

    /// The upstream refuses the credential for every request: no post is at fault.
    pub fn is_refused(&mut self) {
        self.status = UpstreamStatus::Refused;
        self.state = State::Over;
    }

    /// Whether every answer was 403 and no canary has determined the cause.
    pub fn may_be_refused(&self) -> bool {
        self.failed == Some(FailureKind::Forbidden)
            && self.status == UpstreamStatus::Unknown
            && !self.bisection.has_answers()
    }

    /// Whether a canary was refused as well.
    pub fn is_known_to_be_refused(&self) -> bool {
        self.status == UpstreamStatus::Refused
    }

    /// Whether so much was refused without an answer since that the upstream or the credential is
    /// at fault.
    pub fn is_outage(&self) -> bool {
        let is_outage = self.bisection.is_outage() || self.bisection.is_probe_refused();
        match self.status {
            UpstreamStatus::Works => false,
            UpstreamStatus::Down | UpstreamStatus::Refused => true,
            // A request that cannot even be sent is at fault itself.
            UpstreamStatus::Unknown => is_outage && self.failed != Some(FailureKind::BadId),
        }
    }

    /// Whether the upstream has answered anything.
    pub fn is_known_to_work(&self) -> bool {
        self.bisection.has_answers() || self.status == UpstreamStatus::Works
    }

    /// Ends the search, whether or not all posts were answered.
    pub fn end(self) -> Blame<T> {
        let (works, is_outage) = (self.is_known_to_work(), self.is_outage());
        let is_refused = self.status == UpstreamStatus::Refused;
        let verdict = if is_outage {
            self.bisection.end_in_outage()
        } else {
            self.bisection.end()
        };
        let is_cut_short = !verdict.unasked.is_empty() || !verdict.suspects.is_empty();
        let mut blame = Blame {
            hidden: Vec::new(),
            failed: Vec::new(),
            suspects: Vec::new(),
            is_cut_short,
        };
        if is_refused {
            return blame;
        }
        for (at, culprit) in verdict.culprits.into_iter().enumerate() {
            if works && self.forbidden.contains(&at) {
                blame.hidden.push(culprit);
            } else {
                blame.failed.push(culprit);
            }
        }
        blame.suspects = verdict.suspects;
        blame
    }

    fn refused(&mut self, kind: FailureKind) {
        let culprits = self.bisection.culprits();
        self.bisection.refused();
        if kind == FailureKind::Forbidden && self.bisection.culprits() > culprits {
            self.forbidden.push(culprits);
        }
        if self.is_outage() {
            self.state = if self.is_canary_answered {
                State::Over
            } else {
                State::CheckingOutage
            };
        }
    }
}

/// Whether a failure may be the fault of a requested post.
pub fn may_blame_posts(kind: FailureKind) -> bool {
    fault(kind) != Fault::Upstream
}

/// Whether no complete answer came.
pub fn is_silence(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::TimedOut | FailureKind::Truncated | FailureKind::Unreachable
    )
}

fn fault(kind: FailureKind) -> Fault {
    match kind {
        FailureKind::Refused
        | FailureKind::ServerError
        | FailureKind::UnexpectedStatus
        | FailureKind::NotJson
        | FailureKind::BadJson
        | FailureKind::ErrorBody
        | FailureKind::TooLarge
        | FailureKind::BadId => Fault::Posts,
        FailureKind::Forbidden | FailureKind::Redirected => Fault::Unclear,
        kind if is_silence(kind) => Fault::Unclear,
        _ => Fault::Upstream,
    }
}

fn is_refusal(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Forbidden | FailureKind::Unauthorized)
}
