use driftline_core::sync::{
    ACCOUNT_LIBRARY, DeviceIdentity, LibraryNews, LibraryRequest, MAX_PUSH_CHANGES, SourceIntake,
    SourceSession, SyncAnswer, SyncSession, SyncStep, SyncStop,
};
use serde::Serialize;

use crate::{
    Replica, ReplicaError, ServerUrl, backoff::Random, chunk_size::ChunkSize, client::Client,
    conflict_row, index_row, intake::IntakeJob, object_row, push_job, replica_row, source_intake,
    subscription_row,
};

/// The arguments of a synchronization.
pub struct SyncContext<'a> {
    /// The time of conflicts and of the sync in Unix ms.
    pub now_ms: i64,
    /// The source of random numbers.
    pub random: &'a mut Random<'a>,
    /// True if a person has agreed to a mass deletion.
    pub may_remove_many: bool,
    /// The number of places in timelines after which the search index leaves the rest to the next synchronization.
    pub max_indexed: usize,
    /// Called after each answer that was stored, and while the search index is brought up to date, if it is there.
    pub progress: Option<&'a mut (dyn FnMut(&SyncProgress) + Send + 'a)>,
}

impl<'a> SyncContext<'a> {
    /// The arguments of a synchronization at a time in Unix ms that shows no progress, refuses a mass deletion, and
    /// brings the search index up to date.
    pub fn new(now_ms: i64, random: &'a mut Random<'a>) -> Self {
        Self {
            now_ms,
            random,
            may_remove_many: false,
            max_indexed: usize::MAX,
            progress: None,
        }
    }
}

/// The work of a synchronization so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyncProgress {
    /// The number of objects that came.
    pub pulled: usize,
    /// The number of objects that were removed here.
    pub removed: usize,
    /// The number of changes that the server has stored.
    pub pushed: usize,
    /// The number of requests.
    pub requests: u64,
    /// The number of places in timelines that the search index has read.
    pub indexed: usize,
    /// The number of objects that the full syncs under way still bring, 0 without one. `None` if the server has not said it.
    #[serde(skip)]
    pub objects_left: Option<u64>,
}

impl SyncProgress {
    /// Adds the numbers of objects of an answer.
    fn add(&mut self, answer: Self) {
        self.pulled += answer.pulled;
        self.removed += answer.removed;
    }
}

/// The outcome of a synchronization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SyncReport {
    /// The work.
    #[serde(flatten)]
    pub work: SyncProgress,
    /// The number of conflicts that were added, also of those that a rule has resolved.
    pub new_conflicts: usize,
    /// The number of objects with changes that were not sent yet.
    pub dirty: usize,
    /// The number of conflicts that were not resolved yet.
    pub open_conflicts: usize,
}

impl SyncReport {
    /// True if the synchronization has changed something here or on the server.
    pub fn has_changes(&self) -> bool {
        let work = &self.work;
        work.pulled + work.removed + work.pushed + self.new_conflicts > 0
    }
}

/// The direction in which changes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server. Changes of this device stay here.
    Pull,
    /// To the server, after a pull of the account's library. Changes that come between are fetched by the next pull.
    Push,
    /// From the server, and to it.
    Both,
}

/// One synchronization.
struct Run<'a, 'c> {
    replica: &'a Replica,
    client: &'a Client,
    context: &'a mut SyncContext<'c>,
    session: SyncSession,
    sources: SourceSession,
    direction: Direction,
    work: SyncProgress,
    /// The answer to the next pull, which came while its predecessor was stored.
    next_answer: Option<SyncAnswer>,
    /// The size of the next chunk.
    chunk_size: ChunkSize,
    /// The largest number of changes in a push.
    max_changes: usize,
}

impl Replica {
    /// Fetches the changes of the account's library and of the subscriptions, and sends those of this device, as the direction
    /// says. Each library's part of an answer is stored in one transaction with its cursor, so a synchronization that was dropped
    /// goes on there. Then, also after an error, it brings the search index up to date; other processes may sync meanwhile.
    ///
    /// # Errors
    /// [`ReplicaError::ManyRemoved`] if it would remove most of the replica and no person has agreed; [`ReplicaError::Locked`] if
    /// another process syncs the replica for more than 5 s; another [`ReplicaError`] if the server gives no good answer, is
    /// another one or answers for another account, or the database fails.
    pub async fn sync(
        &self,
        client: &Client,
        context: &mut SyncContext<'_>,
        direction: Direction,
    ) -> Result<SyncReport, ReplicaError> {
        let synced = self.sync_alone(client, context, direction).await;
        // The process that keeps the lock indexes, too.
        if direction == Direction::Push || matches!(synced, Err(ReplicaError::Locked(_))) {
            return synced;
        }
        let mut work = synced.as_ref().map(|of| of.work).unwrap_or_default();
        let indexed = self.index_entries(&mut work, context).await;
        let report = synced?;
        indexed?;
        Ok(SyncReport { work, ..report })
    }

    async fn sync_alone(
        &self,
        client: &Client,
        context: &mut SyncContext<'_>,
        direction: Direction,
    ) -> Result<SyncReport, ReplicaError> {
        // Alone from here on, but for edits, and for subscriptions that begin or end.
        let _lock = self.lock().await?;
        let (row, push, before, sources) = self
            .read(move |tx| {
                let sources = match direction {
                    Direction::Push => Vec::new(),
                    Direction::Pull | Direction::Both => subscription_row::progresses(tx)?,
                };
                let push = match direction {
                    Direction::Pull => None,
                    Direction::Push | Direction::Both => push_job::deciding(tx)?,
                };
                let row = replica_row::require(tx)?;
                Ok((row, push, conflict_row::count(tx)?, sources))
            })
            .await?;
        let now_ms = context.now_ms;
        let was_interrupted = row.progress.paging.is_some()
            || sources
                .iter()
                .any(|source| source.cursor.is_some() && !source.is_complete);
        let mut run = Run {
            replica: self,
            client,
            context,
            sources: SourceSession::new(row.binding.clone(), sources),
            session: SyncSession::new(row.progress, Some(row.binding))
                .with_stored_push(push.as_ref()),
            direction,
            work: SyncProgress::default(),
            next_answer: None,
            chunk_size: match row.chunk_bytes {
                Some(bytes) => ChunkSize::after(bytes),
                None => ChunkSize::new(was_interrupted),
            },
            max_changes: MAX_PUSH_CHANGES,
        };
        if let Err(error) = run.steps().await {
            // A program that tries each request once would else ask for a chunk of the same size forever.
            if let Some(bytes) = run.chunk_size.left() {
                self.write(move |tx| replica_row::update(tx, |row| row.chunk_bytes = Some(bytes)))
                    .await?;
            }
            return Err(error);
        }
        let work = run.work;
        let report = self.write(move |tx| {
            replica_row::update(tx, |row| {
                row.synced_at_ms = Some(now_ms);
                row.chunk_bytes = None;
            })?;
            if direction != Direction::Push {
                subscription_row::end_pulls(tx)?;
            }
            Ok(SyncReport {
                work,
                new_conflicts: conflict_row::count(tx)?.saturating_sub(before),
                dirty: object_row::count_dirty(tx)?,
                open_conflicts: conflict_row::count_open(tx)?,
            })
        });
        report.await
    }

    /// Brings the search index up to date, the newest places first. Counts the places that it reads, and shows the progress. A
    /// call that is dropped, or comes to the largest number of places, leaves the rest to the next one.
    ///
    /// # Errors
    /// [`ReplicaError::Db`] if the database fails.
    async fn index_entries(
        &self,
        work: &mut SyncProgress,
        context: &mut SyncContext<'_>,
    ) -> Result<(), ReplicaError> {
        while work.indexed < context.max_indexed {
            let indexed = self
                .write(|tx| {
                    // `init` may have changed the address meanwhile.
                    let url: ServerUrl = replica_row::require(tx)?.url.parse()?;
                    index_row::index_newest(tx, &url.origin(), AT_ONCE)
                })
                .await?;
            if indexed == 0 {
                break;
            }
            work.indexed += indexed;
            if let Some(progress) = &mut context.progress {
                progress(&*work);
            }
        }
        Ok(())
    }
}

impl Run<'_, '_> {
    async fn steps(&mut self) -> Result<(), ReplicaError> {
        let direction = self.direction;
        let mut failed_push = None;
        loop {
            match self.session.next() {
                SyncStep::Pull { cursor } => {
                    // The changes that came between are left to the next pull.
                    if direction == Direction::Push
                        && self.work.pushed > 0
                        && self.replica.read(object_row::count_dirty).await? == 0
                    {
                        return Ok(());
                    }
                    self.pull(Some(own_request(cursor))).await?;
                }
                SyncStep::Push if direction == Direction::Pull || failed_push.is_some() => break,
                SyncStep::Push => match self.push().await {
                    // The server can perhaps be read. Without any answer, a push that decides something is sent again first.
                    Err(error)
                        if matches!(error, ReplicaError::Busy { .. })
                            || (error.may_pass() && !self.session.is_resending()) =>
                    {
                        self.session.nothing_to_push();
                        failed_push = Some(error);
                    }
                    pushed => pushed?,
                },
                SyncStep::Done => break,
            }
        }
        while !self.sources.next().is_empty() {
            self.pull(None).await?;
        }
        let Some(error) = failed_push else {
            return Ok(());
        };
        if direction != Direction::Push {
            self.replica.write(subscription_row::end_pulls).await?;
        }
        Err(error)
    }

    /// Sends one request for the account's library, if `own` is one, and the sources that may have news. Stores the answer.
    async fn pull(&mut self, own: Option<LibraryRequest>) -> Result<(), ReplicaError> {
        let names_own = own.is_some();
        let answer = match self.next_answer.take() {
            Some(answer) => answer,
            None => {
                let libraries = own.into_iter().chain(self.sources.next()).collect();
                self.work.requests += 1;
                let (size, random) = (&mut self.chunk_size, &mut *self.context.random);
                self.client.pull_chunk(libraries, size, random).await?
            }
        };
        let has_more = answer.news.iter().any(|news| news.more);
        let is_own = |news: &LibraryNews| news.library == ACCOUNT_LIBRARY;
        let (own, others): (Vec<_>, Vec<_>) = answer.news.into_iter().partition(is_own);
        let part = |news| SyncAnswer {
            server: answer.server.clone(),
            account: answer.account.clone(),
            news,
        };
        let own = match names_own {
            true => self.take_own(part(own))?,
            false => None,
        };
        let replica = self.replica;
        let may_remove_many = self.context.may_remove_many;
        let sources = match self.sources.pulled(part(others)) {
            Ok(sources) => sources,
            Err(stop) => {
                store(replica, own, Vec::new(), may_remove_many, &mut self.work).await?;
                return Err(self.stopped(stop));
            }
        };
        // Removals may need a person's agreement, so nothing is requested before they are stored.
        let may_remove = own.as_ref().is_some_and(IntakeJob::removes)
            || sources.iter().any(source_intake::removes);
        let libraries = match has_more && !may_remove {
            true => self.next_pull(),
            false => Vec::new(),
        };
        let has_next = !libraries.is_empty();
        let (size, random) = (&mut self.chunk_size, &mut *self.context.random);
        let client = self.client;
        // The next chunk may come while this one is stored.
        let request = async {
            Ok::<_, ReplicaError>(match has_next {
                true => Some(client.pull_chunk(libraries, size, random).await),
                false => None,
            })
        };
        // An error of the store drops the request, and one of the request does not drop the storing.
        let stored = store(replica, own, sources, may_remove_many, &mut self.work);
        let (ended, next) = tokio::try_join!(stored, request)?;
        self.work.requests += u64::from(has_next);
        for library in &ended {
            self.sources.end(library);
        }
        self.show();
        // An answer about a subscription that has ended is not one to the next request.
        if ended.is_empty() {
            self.next_answer = next.transpose()?;
        }
        Ok(())
    }

    /// The libraries of the next pull; none if another step comes before it.
    fn next_pull(&self) -> Vec<LibraryRequest> {
        let own = match self.session.next() {
            // After a push, it depends on what is stored.
            SyncStep::Pull { .. } if self.work.pushed > 0 => return Vec::new(),
            SyncStep::Pull { cursor } => Some(own_request(cursor)),
            SyncStep::Push if self.direction == Direction::Pull => None,
            SyncStep::Done => None,
            SyncStep::Push => return Vec::new(),
        };
        own.into_iter().chain(self.sources.next()).collect()
    }

    /// The job that stores the account's part of an answer; `None` if the stored push is sent again first.
    fn take_own(&mut self, answer: SyncAnswer) -> Result<Option<IntakeJob>, ReplicaError> {
        let intake = self.session.pulled(answer);
        let intake = intake.map_err(|stop| self.stopped(stop))?;
        if self.session.is_resending() {
            return Ok(None);
        }
        Ok(Some(IntakeJob {
            intake,
            is_last: !matches!(self.session.next(), SyncStep::Pull { .. }),
            may_remove_many: self.context.may_remove_many,
            now_ms: self.context.now_ms,
        }))
    }

    async fn push(&mut self) -> Result<(), ReplicaError> {
        let replica = self.replica;
        let (max_changes, now_ms) = (self.max_changes, self.context.now_ms);
        let bits = (self.context.random)();
        let prepared = replica.write(move |tx| push_job::prepare(tx, max_changes, bits, now_ms));
        let Some(push) = prepared.await? else {
            self.session.nothing_to_push();
            return Ok(());
        };
        let answered = self.client.push(&push.body, self.context.random).await;
        match answered {
            Ok(answer) if !push_job::fits(&push, &answer) => Err(ReplicaError::Malformed {
                server: self.client.server().to_string(),
                cause: "the results are not those of the changes".to_owned(),
            }),
            Ok(answer) => {
                let progress = self.session.pushed(&push, &answer);
                let progress = progress.map_err(|stop| self.stopped(stop))?;
                let stored = replica
                    .write(move |tx| push_job::take_answer(tx, &push, &answer, &progress, now_ms));
                self.work.pushed += stored.await?;
                self.work.requests += 1;
                self.max_changes = (self.max_changes * 2).min(MAX_PUSH_CHANGES);
                self.show();
                Ok(())
            }
            Err(ReplicaError::Device { .. }) => {
                tracing::info!(
                    "the server has another record of this device: it takes a new identity"
                );
                let identity = DeviceIdentity::new((self.context.random)());
                let ended = replica.write(move |tx| replica_row::end_push(tx, &identity));
                ended.await?;
                self.session.device_refused();
                Ok(())
            }
            Err(error) if error.push_refusal().is_some() => {
                tracing::warn!("{error}; the changes are sent in smaller parts");
                self.max_changes = (push.changes.len() / 2).max(1);
                let reason = error.push_refusal().unwrap_or_default().to_owned();
                let dropped =
                    replica.write(move |tx| push_job::drop_refused(tx, &push, &reason, now_ms));
                dropped.await
            }
            Err(error @ ReplicaError::Rejected { .. }) => {
                // The server has stored nothing of it. A newer program may make a better one.
                let ended = replica.write(move |tx| replica_row::end_push(tx, &push.identity));
                ended.await?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    fn stopped(&self, stop: SyncStop) -> ReplicaError {
        ReplicaError::stopped(&self.replica.url, stop)
    }

    fn show(&mut self) {
        let own = self.session.objects_left();
        let left = own.zip(self.sources.objects_left());
        self.work.objects_left = left.map(|(own, sources)| own.saturating_add(sources));
        if let Some(progress) = &mut self.context.progress {
            progress(&self.work);
        }
    }
}

/// Stores the parts of an answer, each in one transaction. Returns the libraries whose subscriptions have ended meanwhile, or are
/// others.
async fn store(
    replica: &Replica,
    own: Option<IntakeJob>,
    sources: Vec<SourceIntake>,
    may_remove_many: bool,
    work: &mut SyncProgress,
) -> Result<Vec<String>, ReplicaError> {
    let mut ended = Vec::new();
    if let Some(job) = own {
        work.add(replica.write(move |tx| job.run(tx)).await?);
    }
    for intake in sources {
        let library = intake.progress.library.clone();
        let stored = replica.write(move |tx| source_intake::store(tx, &intake, may_remove_many));
        match stored.await? {
            Some(counts) => work.add(counts),
            None => ended.push(library),
        }
    }
    Ok(ended)
}

/// The request for the account's own library.
fn own_request(cursor: Option<String>) -> LibraryRequest {
    LibraryRequest {
        library: ACCOUNT_LIBRARY.to_owned(),
        cursor,
        filter: None,
    }
}

/// The number of places that are read in one transaction. Edits of other commands wait for it.
const AT_ONCE: u32 = 300;
