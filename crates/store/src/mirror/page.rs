use driftline_core::{
    answer::{Abilities, Page},
    refresh::Policy,
    timeline::{Machine, Reading, Request, Settings},
};
use driftline_db::Tx;

use crate::{
    error::StoreError,
    id_types::SourceKey,
    mirror::{asked_page::AskedPage, commit_summary::CommitSummary, page_group},
    posts::rehash::HashStored,
    refresh::Claims,
};

/// A page to commit, with the machine that requested it.
#[derive(Clone, Copy, Debug)]
pub struct CommitPage<'a> {
    /// The source; the write's root is [`crate::mirror::source::root`] of it.
    pub source: SourceKey,
    /// The lease's fencing number, if there is a lease.
    pub fence: Option<i64>,
    /// The machine as it stands before the page.
    pub machine: &'a Machine,
    /// The source's settings.
    pub settings: &'a Settings,
    /// What the upstream's timeline can do.
    pub abilities: Abilities,
    /// The request.
    pub request: &'a Request,
    /// The page's checked IDs.
    pub reading: &'a Reading,
    /// The page.
    pub page: &'a Page,
    /// How posts are refreshed from now on.
    pub policy: &'a Policy,
    /// Hashes posts that are stored with hashes of an earlier form.
    pub hash_stored: HashStored,
    /// The claims of this process's workers, to which a page leaves the claimed posts.
    pub claims: &'a Claims,
    /// The time, Unix ms.
    pub now_ms: i64,
}

/// Commits a page: its posts, what it says about stored ones, the ledger and the machine. Returns
/// the machine after the page.
pub fn commit_page(
    tx: &mut Tx<'_>,
    commit: &CommitPage<'_>,
) -> Result<(Machine, CommitSummary), StoreError> {
    match commit_pages(tx, std::slice::from_ref(commit))?.pop() {
        Some(PageOutcome::Committed(machine, summary)) => Ok((*machine, summary)),
        Some(PageOutcome::Refused(error)) => Err(error),
        Some(PageOutcome::Alone) | None => {
            Err(StoreError::unreadable("a page", &"it is not alone"))
        }
    }
}

/// What became of a page that was to be committed with others.
#[derive(Debug)]
pub enum PageOutcome {
    /// It is written, with the machine after it.
    Committed(Box<Machine>, CommitSummary),
    /// Its source is gone, or read by another process, or the page is none of its request.
    Refused(StoreError),
    /// It has to be committed alone, in the next transaction.
    Alone,
}

/// Commits pages of different sources as [`commit_page`] does each of them, in step: what they send is merged,
/// and costs about as much as one page. Returns their outcomes, in their order; to be written below
/// [`Root::none`](driftline_db::Root::none), since it locks the sources itself.
///
/// # Errors
/// If the database failed, for all of them.
pub fn commit_pages(
    tx: &mut Tx<'_>,
    commits: &[CommitPage<'_>],
) -> Result<Vec<PageOutcome>, StoreError> {
    // Locks are taken in the order of their keys.
    let mut order: Vec<usize> = (0..commits.len()).collect();
    order.sort_unstable_by_key(|index| commits[*index].source);
    order.dedup_by_key(|index| commits[*index].source);
    let is_group = order.len() > 1;
    if is_group && tx.is_distributed() {
        // There each instance more is a node more to commit on.
        order.truncate(1);
    }
    let mut outcomes: Vec<PageOutcome> = commits.iter().map(|_| PageOutcome::Alone).collect();
    let mut asked = Vec::with_capacity(order.len());
    tx.in_step(order, |tx, index| {
        let commit = &commits[index];
        if is_group && commit.machine.is_history(commit.request, commit.reading) {
            // It holds the clock while it looks for free IDs.
            return Ok(());
        }
        match AskedPage::ask(tx, commit)? {
            Ok(page) => asked.push((index, page)),
            Err(mismatch) => outcomes[index] = PageOutcome::Refused(mismatch),
        }
        Ok::<_, StoreError>(())
    })?;
    let mut sources = Vec::with_capacity(asked.len());
    let mut pages = Vec::with_capacity(asked.len());
    for (index, page) in asked {
        match page.check(tx) {
            Ok((source, page)) => {
                sources.push(source);
                pages.push((index, page));
            }
            Err(StoreError::Db(error)) => return Err(StoreError::Db(error)),
            Err(refusal) => outcomes[index] = PageOutcome::Refused(refusal),
        }
    }
    page_group::commit(tx, sources, pages, &mut outcomes)?;
    Ok(outcomes)
}
