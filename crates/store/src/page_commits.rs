//! Commits of pages that wait for each other, so that one transaction commits several: see
//! [`commit_pages`].

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use async_channel::Sender;
use driftline_core::{
    answer::{Abilities, Page},
    refresh::Policy,
    timeline::{Machine, Reading, Request, Settings},
};
use driftline_db::{DbError, Dialect, Root, Tx};

use crate::{
    error::StoreError,
    id_types::{InstanceId, SourceKey},
    mirror::{CommitPage, CommitSummary, PageOutcome, commit_page, commit_pages},
    posts::rehash::HashStored,
    refresh::{Claims, PendingRechecks, RecheckAfter},
    store::Store,
};

/// A page to commit, as [`CommitPage`], that may wait for its turn.
#[derive(Clone, Debug)]
pub struct OwnedPage {
    /// The source.
    pub source: SourceKey,
    /// The lease's fencing number, if there is a lease.
    pub fence: Option<i64>,
    /// The machine as it stands before the page.
    pub machine: Machine,
    /// The source's settings.
    pub settings: Settings,
    /// What the upstream's timeline can do.
    pub abilities: Abilities,
    /// The request.
    pub request: Request,
    /// The page's checked IDs.
    pub reading: Reading,
    /// The page.
    pub page: Arc<Page>,
    /// How posts are refreshed from now on.
    pub policy: Policy,
    /// Hashes posts that are stored with hashes of an earlier form.
    pub hash_stored: HashStored,
    /// The claims of this process's workers.
    pub claims: Claims,
    /// The time, Unix ms.
    pub now_ms: i64,
    /// Whether the answer tells when the page's posts have to be checked again, even if none was recounted.
    pub tells_rechecks: bool,
}

/// What a page's commit led to.
#[derive(Debug)]
pub struct CommittedPage {
    /// The machine after it.
    pub machine: Machine,
    /// What it changed.
    pub summary: CommitSummary,
    /// When the page's posts have to be checked again, if it tells that or recounted any.
    pub rechecks: Vec<Option<RecheckAfter>>,
}

type Answer = Result<CommittedPage, StoreError>;

/// Commits the pages of a process's sources. While as many transactions are under way as it has lanes, pages
/// wait, and then those that wait are one transaction; with a free lane a page commits at once.
#[derive(Clone, Debug)]
pub struct PageCommits {
    store: Store,
    lanes: Option<Arc<Lanes>>,
}

/// The threads that commit. They end after the last handle is dropped.
#[derive(Debug)]
struct Lanes(Arc<PageQueue>);

#[derive(Debug, Default)]
struct PageQueue {
    state: Mutex<QueueState>,
    /// A page came, a transaction ended, or all is over.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: Vec<WaitingPage>,
    /// The instances of the transactions that are under way.
    busy: Vec<InstanceId>,
    free_lanes: usize,
    is_closed: bool,
}

#[derive(Debug)]
struct WaitingPage {
    page: Arc<OwnedPage>,
    answer: Sender<Answer>,
}

impl PageCommits {
    /// Of a store. SQLite, which has one writer, and a distributed database commit each page in a transaction of
    /// its own.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn new(store: Store) -> Result<PageCommits, StoreError> {
        let is_grouped = store.dialect() == Dialect::Postgres && !store.is_distributed();
        if !is_grouped {
            return Ok(PageCommits { store, lanes: None });
        }
        let lanes = Lanes(Arc::default());
        for _ in 0..LANES {
            let (store, queue) = (store.clone(), Arc::clone(&lanes.0));
            thread::Builder::new()
                .name("driftline-pages".to_owned())
                .spawn(move || {
                    while let Some(group) = queue.take() {
                        commit_group(&store, &group);
                        queue.ended(&group);
                    }
                })
                .map_err(|error| StoreError::unreadable("a thread", &error))?;
        }
        Ok(PageCommits {
            store,
            lanes: Some(Arc::new(lanes)),
        })
    }

    /// Commits a page. A dropped future's page is committed all the same, once it is not waiting any more.
    ///
    /// # Errors
    /// As [`commit_page`].
    pub async fn commit(&self, page: OwnedPage) -> Answer {
        let page = Arc::new(page);
        let Some(lanes) = &self.lanes else {
            return self.store.write(Root::none(), alone(page)).await;
        };
        let (answer, answered) = async_channel::bounded(1);
        lanes.0.push(WaitingPage { page, answer });
        let answer = answered.recv().await;
        answer.unwrap_or(Err(StoreError::Db(DbError::Closed)))
    }
}

impl PageQueue {
    fn push(&self, page: WaitingPage) {
        self.lock().waiting.push(page);
        self.changed.notify_one();
    }

    /// Waits for pages to commit; `None` when all is over.
    fn take(&self) -> Option<Vec<WaitingPage>> {
        let mut state = self.lock();
        state.free_lanes += 1;
        loop {
            if state.is_closed {
                return None;
            }
            let group = state.take_group();
            if !group.is_empty() {
                state.free_lanes -= 1;
                return Some(group);
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn ended(&self, group: &[WaitingPage]) {
        let mut state = self.lock();
        for page in group {
            let of_page = |busy: &InstanceId| *busy == page.page.source.instance;
            if let Some(at) = state.busy.iter().position(of_page) {
                state.busy.swap_remove(at);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// The pages of the next transaction: of what waits a share for each free lane, and of an instance none that
    /// another transaction holds, but all that wait.
    fn take_group(&mut self) -> Vec<WaitingPage> {
        self.waiting.retain(|page| !page.answer.is_closed());
        let share = self.waiting.len().div_ceil(self.free_lanes.max(1));
        let mut group: Vec<WaitingPage> = Vec::new();
        let mut posts = 0;
        for page in std::mem::take(&mut self.waiting) {
            let source = page.page.source;
            let mut others = group.iter().map(|other| other.page.source);
            let is_of_group = others.any(|other| other.instance == source.instance);
            let is_wanted = group.len() < MAX_PAGES
                && (group.len() < share || is_of_group)
                && (group.is_empty() || posts + page.page.page.listed.len() <= MAX_POSTS)
                && !self.busy.contains(&source.instance);
            match is_wanted {
                true => {
                    posts += page.page.page.listed.len();
                    group.push(page);
                }
                false => self.waiting.push(page),
            }
        }
        let instances = group.iter().map(|page| page.page.source.instance);
        self.busy.extend(instances);
        group
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

fn commit_group(store: &Store, group: &[WaitingPage]) {
    if let [page] = group {
        return answer_alone(store, page);
    }
    let pages: Vec<Arc<OwnedPage>> = group.iter().map(|page| Arc::clone(&page.page)).collect();
    let committed = store.write_blocking(Root::none(), move |tx| commit_together(tx, &pages));
    let Ok(committed) = committed else {
        // One of them may be what the database refuses.
        group.iter().for_each(|page| answer_alone(store, page));
        return;
    };
    for (page, committed) in group.iter().zip(committed) {
        match committed {
            Some(answer) => page.answers(answer),
            None => answer_alone(store, page),
        }
    }
}

/// The answers to those pages that do not have to be committed alone.
fn commit_together(
    tx: &mut Tx<'_>,
    pages: &[Arc<OwnedPage>],
) -> Result<Vec<Option<Answer>>, StoreError> {
    let commits: Vec<CommitPage<'_>> = pages.iter().map(|page| page.commit()).collect();
    let outcomes = commit_pages(tx, &commits)?;
    let mut asked = Vec::new();
    tx.in_step(pages.iter().zip(&outcomes), |tx, (page, outcome)| {
        asked.push(match outcome {
            PageOutcome::Committed(_, summary) => page.ask_rechecks(tx, summary)?,
            _ => None,
        });
        Ok::<_, StoreError>(())
    })?;
    let mut answers = Vec::with_capacity(pages.len());
    for ((outcome, asked), page) in outcomes.into_iter().zip(asked).zip(pages) {
        answers.push(match outcome {
            PageOutcome::Committed(machine, summary) => Some(Ok(CommittedPage {
                machine: *machine,
                summary,
                rechecks: match asked {
                    Some(asked) => asked.read(tx, &page.reading, &page.page)?,
                    None => Vec::new(),
                },
            })),
            PageOutcome::Refused(refusal) => Some(Err(refusal)),
            PageOutcome::Alone => None,
        });
    }
    Ok(answers)
}

fn answer_alone(store: &Store, page: &WaitingPage) {
    let answer = store.write_blocking(Root::none(), alone(Arc::clone(&page.page)));
    page.answers(answer);
}

/// Commits one page.
fn alone(page: Arc<OwnedPage>) -> impl FnMut(&mut Tx<'_>) -> Answer + Send + 'static {
    move |tx| {
        let (machine, summary) = commit_page(tx, &page.commit())?;
        let asked = page.ask_rechecks(tx, &summary)?;
        Ok(CommittedPage {
            machine,
            summary,
            rechecks: match asked {
                Some(asked) => asked.read(tx, &page.reading, &page.page)?,
                None => Vec::new(),
            },
        })
    }
}

impl WaitingPage {
    fn answers(&self, answer: Answer) {
        // Whoever has gone away gets none.
        let _ = self.answer.try_send(answer);
    }
}

impl OwnedPage {
    fn commit(&self) -> CommitPage<'_> {
        CommitPage {
            source: self.source,
            fence: self.fence,
            machine: &self.machine,
            settings: &self.settings,
            abilities: self.abilities,
            request: &self.request,
            reading: &self.reading,
            page: &self.page,
            policy: &self.policy,
            hash_stored: self.hash_stored,
            claims: &self.claims,
            now_ms: self.now_ms,
        }
    }

    fn ask_rechecks(
        &self,
        tx: &mut Tx<'_>,
        summary: &CommitSummary,
    ) -> Result<Option<PendingRechecks>, StoreError> {
        if !self.tells_rechecks && summary.recounted == 0 {
            return Ok(None);
        }
        PendingRechecks::ask(tx, self.source, &self.reading).map(Some)
    }
}

/// How many transactions of pages a process has under way.
const LANES: usize = 4;
/// Bounds what one transaction locks, and how long it takes.
const MAX_PAGES: usize = 16;
/// Of all pages together, unless one alone has more.
const MAX_POSTS: usize = 1_000;
