use super::{
    Binding, Incoming, LibraryNews, LibraryProgress, LibraryState, PushAnswer, SentChange,
    StoredPush, SweepMode, SyncAnswer, progress::objects_left,
};

/// One synchronization of the account's library: it says what to request next, and takes the answers. The caller makes the
/// requests and stores the results.
///
/// After a failed request, and after an answer that stops it, the caller drops the session. The next one begins with a pull,
/// since the server may have been restored in between.
#[derive(Clone, Debug)]
pub struct SyncSession {
    progress: LibraryProgress,
    binding: Option<Binding>,
    phase: Phase,
    /// True until the first answer if the stored push is sent again before changes are taken.
    resends: bool,
    chunks: u32,
    pushes: u32,
}

/// The caller's next step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SyncStep {
    /// Pull with this cursor.
    Pull {
        /// The cursor.
        cursor: Option<String>,
    },
    /// Send the stored push again if it is current, else build, store and send the next push.
    Push,
    /// Nothing: the synchronization is complete.
    Done,
}

/// Why a synchronization was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SyncStop {
    /// The answer is of another server.
    #[error("this copy belongs to the server {expected}, but {found} answered")]
    OtherServer {
        /// The replica's server.
        expected: String,
        /// The server that answered.
        found: String,
    },
    /// The answer is of another account.
    #[error("this copy belongs to the account {expected}, but the server answered for {found}")]
    OtherAccount {
        /// The replica's account.
        expected: String,
        /// The account of the answer.
        found: String,
    },
    /// The server has more, but its cursor is the one that was sent.
    #[error("the server's cursor does not advance")]
    NoProgress,
    /// There are more chunks than a library can have.
    #[error("the server sent more than {MAX_CHUNKS} chunks")]
    TooManyChunks,
    /// The answer does not fit the request.
    #[error("invalid answer: {0}")]
    InvalidAnswer(&'static str),
}

/// The changes that the caller stores after a pull, in one transaction and in the order of the fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Intake {
    /// The server and account of the replica.
    pub binding: Binding,
    /// True if the account may not read the library any more: each object goes through `library_gone`.
    pub is_gone: bool,
    /// The objects and tombstones that came. Each goes through `incoming`.
    pub entries: Vec<Incoming>,
    /// The sweep of all objects after the entries, with the number `progress.full_sync`. Objects that have moved above the full
    /// sync have come by then.
    pub sweep: Option<SweepMode>,
    /// The new progress.
    pub progress: LibraryProgress,
}

#[derive(Clone, Debug)]
enum Phase {
    Pulling,
    /// Sends the stored push again, and pulls then.
    Resending,
    /// Asks whether the server still has the changes up to `ahead`.
    Checking,
    Pushing,
    Done,
}

impl SyncSession {
    /// A synchronization of a replica with this progress and binding.
    pub fn new(progress: LibraryProgress, binding: Option<Binding>) -> Self {
        Self {
            progress,
            binding,
            phase: Phase::Pulling,
            resends: false,
            chunks: 0,
            pushes: 0,
        }
    }

    /// The same synchronization, which sends this push again before it takes changes. The caller gives it only if its answer
    /// decides something: if a member of [`StoredPush::added_members`] was deleted on the device since. Without the answer that
    /// member could not be told from one that another device has added.
    pub fn with_stored_push(mut self, push: Option<&StoredPush>) -> Self {
        let full_sync = self.progress.full_sync;
        let is_current = push.is_some_and(|push| push.is_current(full_sync));
        self.resends = is_current && self.progress.is_complete();
        self
    }

    /// The next step. It stays the same until an answer to it was taken.
    pub fn next(&self) -> SyncStep {
        match &self.phase {
            Phase::Pulling => SyncStep::Pull {
                cursor: self.progress.cursor.clone(),
            },
            Phase::Checking => SyncStep::Pull {
                cursor: self.progress.ahead.clone(),
            },
            Phase::Resending => SyncStep::Push,
            Phase::Pushing if self.pushes < MAX_PUSHES => SyncStep::Push,
            Phase::Pushing | Phase::Done => SyncStep::Done,
        }
    }

    /// The number of objects that a full sync under way still brings, 0 without one. `None` if the server has not said it.
    pub fn objects_left(&self) -> Option<u64> {
        match self.progress.paging {
            Some(_) => self.progress.objects_left,
            None => Some(0),
        }
    }

    /// True if the last answer has changes that are not taken, since the stored push is sent again before.
    pub fn is_resending(&self) -> bool {
        matches!(self.phase, Phase::Resending)
    }

    /// Takes the answer to a pull.
    ///
    /// # Errors
    /// [`SyncStop`] if the answer is of another server or account, is not valid, or does not come nearer to an end. The
    /// caller stores nothing of it.
    pub fn pulled(&mut self, answer: SyncAnswer) -> Result<Intake, SyncStop> {
        let binding = self.bind(&answer.server, &answer.account)?;
        self.chunks += 1;
        if self.chunks > MAX_CHUNKS {
            return Err(SyncStop::TooManyChunks);
        }
        let mut intake = Intake {
            binding,
            is_gone: false,
            entries: Vec::new(),
            sweep: None,
            progress: LibraryProgress::default(),
        };
        let resends = std::mem::take(&mut self.resends);
        let mut news = answer.news.into_iter();
        match news.find(|news| news.library == ACCOUNT_LIBRARY) {
            Some(news) if resends && news.state == LibraryState::Changes => {
                self.phase = Phase::Resending;
            }
            Some(news) => self.take_news(news, &mut intake)?,
            None if self.progress.paging.is_some() || self.progress.cursor.is_none() => {
                return Err(SyncStop::InvalidAnswer(
                    "a full sync ended without a last chunk",
                ));
            }
            None => self.caught_up(&mut intake),
        }
        intake.progress = self.progress.clone();
        Ok(intake)
    }

    /// Takes the answer to `push`, and returns the progress that the caller stores with the results.
    ///
    /// # Errors
    /// [`SyncStop`] if the answer is of another server or account. The caller stores nothing of it.
    pub fn pushed(
        &mut self,
        push: &StoredPush,
        answer: &PushAnswer,
    ) -> Result<LibraryProgress, SyncStop> {
        self.bind(&answer.server, &answer.account)?;
        self.pushes += 1;
        // Deleting a list deletes its members, for example. The results do not name them.
        let is_complete = !push.changes.iter().any(SentChange::may_change_others);
        let takes_cursor = is_complete && self.progress.cursor.as_ref() == Some(&answer.before);
        if takes_cursor {
            self.progress.cursor = Some(answer.after.clone());
        } else {
            self.progress.ahead = Some(answer.after.clone());
        }
        if self.is_resending() || !takes_cursor {
            self.phase = Phase::Pulling;
        }
        Ok(self.progress.clone())
    }

    /// Notes that nothing is pushed now: there is no dirty object, or the server cannot take a push.
    pub fn nothing_to_push(&mut self) {
        self.phase = match self.phase {
            Phase::Resending => Phase::Pulling,
            _ => Phase::Done,
        };
    }

    /// Notes that the server has refused the device. The caller drops the stored push and takes a new identity. A pull comes
    /// first, since it may be the server that was restored.
    pub fn device_refused(&mut self) {
        self.pushes += 1;
        self.phase = Phase::Pulling;
    }

    fn take_news(&mut self, news: LibraryNews, intake: &mut Intake) -> Result<(), SyncStop> {
        match news.state {
            LibraryState::Diverged => self.begin_reconcile()?,
            LibraryState::Gone => {
                self.progress = LibraryProgress {
                    full_sync: self.progress.full_sync,
                    ..LibraryProgress::default()
                };
                self.phase = Phase::Done;
                intake.is_gone = true;
            }
            // The server has all that the replica has.
            _ if matches!(self.phase, Phase::Checking) => self.caught_up(intake),
            LibraryState::Changes => {
                if self.progress.paging.is_some() || self.progress.cursor.is_none() {
                    return Err(SyncStop::InvalidAnswer("changes in a full sync"));
                }
                let more = news.more;
                self.take_chunk(news, more, intake)?;
                if !more {
                    self.caught_up(intake);
                }
            }
            LibraryState::Full => {
                let is_first = news.first || self.progress.paging.is_none();
                if self.progress.paging.is_none() {
                    // The losses of a sweep that did not come are still to be listed.
                    let mode = self.progress.sweep.unwrap_or(SweepMode::Sweep);
                    self.begin_full_sync(mode);
                }
                let before = match is_first {
                    true => news.count,
                    false => self.progress.objects_left,
                };
                let more = news.more;
                self.progress.objects_left = objects_left(before, news.objects.len(), more);
                self.take_chunk(news, true, intake)?;
                if !more {
                    self.progress.sweep = self.progress.paging.take();
                }
            }
        }
        Ok(())
    }

    /// Takes a chunk and its cursor. `continues` is true if another pull follows.
    fn take_chunk(
        &mut self,
        news: LibraryNews,
        continues: bool,
        intake: &mut Intake,
    ) -> Result<(), SyncStop> {
        let Some(cursor) = news.cursor else {
            return Err(SyncStop::InvalidAnswer("news without a cursor"));
        };
        if continues && self.progress.cursor.as_ref() == Some(&cursor) {
            return Err(SyncStop::NoProgress);
        }
        self.progress.cursor = Some(cursor);
        let full_sync = self.progress.full_sync;
        for object in news.objects {
            let value = object.value.read();
            let value =
                value.map_err(|_| SyncStop::InvalidAnswer("a value that cannot be read"))?;
            intake.entries.push(Incoming {
                key: object.key,
                usn: object.usn,
                value: Some(value),
                full_sync,
            });
        }
        let gone = news.gone.into_iter().map(|tombstone| Incoming {
            key: tombstone.key,
            usn: tombstone.usn,
            value: None,
            full_sync,
        });
        intake.entries.extend(gone);
        Ok(())
    }

    fn begin_reconcile(&mut self) -> Result<(), SyncStop> {
        if self.progress.cursor.is_none() {
            return Err(SyncStop::InvalidAnswer("diverged, without a cursor"));
        }
        self.progress.cursor = None;
        self.progress.ahead = None;
        self.begin_full_sync(SweepMode::Reconcile);
        self.phase = Phase::Pulling;
        Ok(())
    }

    fn begin_full_sync(&mut self, mode: SweepMode) {
        self.progress.full_sync += 1;
        self.progress.paging = Some(mode);
        self.progress.sweep = None;
        self.progress.objects_left = None;
    }

    /// The replica has all changes up to its cursor. Before a sweep it is checked that the server has lost nothing.
    fn caught_up(&mut self, intake: &mut Intake) {
        let is_checked = matches!(self.phase, Phase::Checking);
        if is_checked || self.progress.ahead == self.progress.cursor {
            self.progress.ahead = None;
        }
        if self.progress.ahead.is_some() {
            self.phase = Phase::Checking;
            return;
        }
        intake.sweep = self.progress.sweep.take();
        self.phase = Phase::Pushing;
    }

    fn bind(&mut self, server: &str, account: &str) -> Result<Binding, SyncStop> {
        let found = || Binding {
            server: server.to_owned(),
            account: account.to_owned(),
        };
        let bound = self.binding.get_or_insert_with(found);
        bound.check(server, account)?;
        Ok(bound.clone())
    }
}

impl Binding {
    /// Checks that an answer is of this server and account.
    ///
    /// # Errors
    /// [`SyncStop::OtherServer`] or [`SyncStop::OtherAccount`] if it is not.
    pub fn check(&self, server: &str, account: &str) -> Result<(), SyncStop> {
        if self.server != server {
            return Err(SyncStop::OtherServer {
                expected: self.server.clone(),
                found: server.to_owned(),
            });
        }
        if self.account != account {
            return Err(SyncStop::OtherAccount {
                expected: self.account.clone(),
                found: account.to_owned(),
            });
        }
        Ok(())
    }
}

/// The name of the library of the token's account.
pub const ACCOUNT_LIBRARY: &str = "account";

/// The largest number of pushes of one synchronization.
const MAX_PUSHES: u32 = 100;

/// The largest number of answers to pulls of one synchronization.
pub(super) const MAX_CHUNKS: u32 = 1_000_000;
