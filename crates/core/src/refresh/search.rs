use super::bisection::Bisection;
use crate::answer::FailureKind;

/// Looks the posts of a claim up, and finds whose fault it is where that fails: a post's, the
/// upstream's or the credential's.
///
/// What is asked for next is [`Search::next`]; what came of it is told to it, and [`Search::end`]
/// says what becomes of the posts that were not answered. Posts that a batch is refused for are
/// found by halving it ([`Bisection`]); what tells them from an upstream that is down is a
/// *canary*, another post that is known to be answered.
///
/// Whoever is at fault, of four turns in a row that fail at least one has changed something: a post
/// has failed and is due later, or its part is smaller the next time. So nothing at the head of a
/// schedule stays there for ever, and an outage costs at most one post's timeout a turn.
#[derive(Debug, Clone)]
pub struct Search<T> {
    bisection: Bisection<T>,
    standing: Standing,
    state: State,
    /// The last failure.
    failed: Option<FailureKind>,
    /// Which of the culprits were refused with 403, by their places.
    forbidden: Vec<usize>,
    is_canary_answered: bool,
}

/// What is to be asked next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next<'a, T> {
    /// These posts.
    Posts(&'a [T]),
    /// A post that is not among those that were asked for last; see [`Search::heard`].
    Canary,
    /// Nothing more.
    Nothing,
}

/// What a canary said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CanaryResult {
    /// It was answered: the upstream works.
    Answered,
    /// It was not.
    Failed(FailureKind),
    /// It was not asked: there is none, or no quota or no time for it.
    Unasked,
}

/// What becomes of the posts that no answer told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blame<T> {
    /// They exist, and this credential may not see them.
    pub hidden: Vec<T>,
    /// They failed: nothing usable is answered when they are asked for alone.
    pub failed: Vec<T>,
    /// They were asked for with others, of which one may be at fault.
    pub suspects: Vec<T>,
    /// Whether some posts were left that nobody is blamed for: they are due as they were.
    pub is_cut_short: bool,
}

/// What is known of the upstream, and of the credential, apart from the posts that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nothing yet.
    Unknown,
    /// Something else was asked for and answered: what fails is the fault of a post.
    Works,
    /// It was not.
    Down,
    /// The upstream does not take the credential.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Posts are asked for, as long as there are any.
    Asking,
    /// A canary is to say whose fault the last failure was, before it counts as the posts'.
    CheckingCause,
    /// So much has failed that a canary is to say whether the upstream is down.
    CheckingOutage,
    /// Nothing more is asked for.
    Over,
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The upstream's or the credential's: nothing more is asked.
    Upstream,
    /// A post's, unless everything fails.
    Posts,
    /// A post's, if anything else is answered; else the upstream's or the credential's.
    Unclear,
}

impl<T> Search<T> {
    /// Begins with a batch of which nothing has been asked for; each post with its failures in a
    /// row. An upstream that was `silent` for two turns is asked first for the posts that failed
    /// least, for all of those that one request holds; after three, for one of them.
    pub fn new(batch: Vec<T>, failures: impl Fn(&T) -> u32, silent: u32) -> Self {
        let most = batch.len();
        Self {
            bisection: match silent {
                0 | 1 => Bisection::new(batch, failures),
                2 => Bisection::with_probe(batch, failures, most),
                _ => Bisection::with_probe(batch, failures, 1),
            },
            standing: Standing::Unknown,
            state: State::Asking,
            failed: None,
            forbidden: Vec::new(),
            is_canary_answered: false,
        }
    }

    /// What is to be asked next.
    pub fn next(&self) -> Next<'_, T> {
        match self.state {
            State::Asking => self.bisection.part().map_or(Next::Nothing, Next::Posts),
            State::CheckingCause | State::CheckingOutage => Next::Canary,
            State::Over => Next::Nothing,
        }
    }

    /// The posts that were asked for were answered; returns them.
    pub fn answered(&mut self) -> Vec<T> {
        self.bisection.accepted()
    }

    /// Asking for posts failed.
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

    /// A canary was asked, or could not be.
    pub fn heard(&mut self, said: CanaryResult) {
        let kind = self.failed.unwrap_or(FailureKind::ServerError);
        self.is_canary_answered = true;
        self.standing = match said {
            CanaryResult::Answered => Standing::Works,
            CanaryResult::Failed(other) if kind == FailureKind::Forbidden && is_refusal(other) => {
                Standing::Refused
            }
            CanaryResult::Failed(_) => Standing::Down,
            CanaryResult::Unasked => self.standing,
        };
        match (self.state, self.standing) {
            (_, Standing::Refused) => self.state = State::Over,
            (State::CheckingCause, Standing::Down) => {
                // It alone may be what takes so long: it makes room for others.
                if self.bisection.part().is_some_and(|part| part.len() == 1) {
                    self.bisection.refused();
                }
                self.state = State::Over;
            }
            (State::CheckingCause, _) => {
                self.state = State::Asking;
                self.refused(kind);
            }
            (_, Standing::Works) => self.state = State::Asking,
            _ => self.state = State::Over,
        }
    }

    /// The upstream refuses the credential, whatever it is asked for: no post is to blame.
    pub fn is_refused(&mut self) {
        self.standing = Standing::Refused;
        self.state = State::Over;
    }

    /// Whether every answer was 403, and no canary has told whose fault that is.
    pub fn may_be_refused(&self) -> bool {
        self.failed == Some(FailureKind::Forbidden)
            && self.standing == Standing::Unknown
            && !self.bisection.has_answers()
    }

    /// Whether a canary was refused as well.
    pub fn is_known_to_be_refused(&self) -> bool {
        self.standing == Standing::Refused
    }

    /// Whether so much was refused, and nothing answered since, that the upstream or the credential
    /// is at fault.
    pub fn is_outage(&self) -> bool {
        let is_outage = self.bisection.is_outage() || self.bisection.is_probe_refused();
        match self.standing {
            Standing::Works => false,
            Standing::Down | Standing::Refused => true,
            // What cannot even be sent is at fault itself.
            Standing::Unknown => is_outage && self.failed != Some(FailureKind::BadId),
        }
    }

    /// Whether the upstream has answered anything.
    pub fn is_known_to_work(&self) -> bool {
        self.bisection.has_answers() || self.standing == Standing::Works
    }

    /// Ends it, with its posts answered or not.
    pub fn end(self) -> Blame<T> {
        let (works, is_outage) = (self.is_known_to_work(), self.is_outage());
        let is_refused = self.standing == Standing::Refused;
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

/// Whether a failure may be the fault of a post that was asked for.
pub fn may_blame_posts(kind: FailureKind) -> bool {
    fault(kind) != Fault::Upstream
}

/// Whether no whole answer came.
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
