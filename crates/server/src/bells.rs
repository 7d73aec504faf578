//! Notifications of posts: by authors whom accounts follow with `notify`, and of lists that notify.
//! Posts that edits bring into lists get their entries here, too.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use driftline_api::{find::Search, transport::Address};
use driftline_core::predicate::Predicate;
use driftline_mastodon::reply_to;
use driftline_runtime::now_ms;
use driftline_store::{
    LocalAccountId, LocalId, Store, StoreError, Tx,
    edited_post::{self, EditedPost},
    search,
    social::{
        bell,
        list_bell::{self, NewMatches, StandingList},
        list_entry::ListKey,
        local_account,
    },
    timeline::{Range, TimelinePost, Viewer},
};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, sleep},
};

use crate::{failing_lists::FailingLists, standing_lists::StandingLists};

/// Notifies of new posts every few seconds, until the stop. The address is the server's.
pub async fn keep_ringing(store: Store, address: Address, mut stop: watch::Receiver<bool>) {
    let mut bells = Bells::new(store, address);
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            _ = ticks.tick() => {}
        }
        let turn = bells.ring_all();
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            // Other tasks report that the store is unavailable.
            done = turn => if let Err(error) = done {
                tracing::debug!(%error, "not all new posts were notified; it is tried again soon");
            },
        }
    }
}

/// Removes edited posts that no list has to be compared with, every minute until the stop. A process that
/// compares no lists needs it: otherwise a store that it alone writes would keep each edited post.
pub async fn keep_forgetting_edits(store: Store, mut stop: watch::Receiver<bool>) {
    loop {
        if let Err(error) = forget_unneeded_edits(&store).await {
            tracing::debug!(%error, "edited posts were not removed; it is tried again soon");
        }
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            () = sleep(FORGET_EVERY) => {}
        }
    }
}

async fn forget_unneeded_edits(store: &Store) -> Result<(), StoreError> {
    loop {
        let read = |tx: &mut Tx<'_>| list_bell::unneeded_edits(tx, MAX_EDITED);
        let edited = store.read(read).await?;
        if edited.is_empty() {
            return Ok(());
        }
        let forget = move |tx: &mut Tx<'_>| edited_post::forget(tx, &edited);
        store.write(search::root(), forget).await?;
    }
}

/// Notifies accounts of new posts.
#[derive(Debug)]
pub struct Bells {
    store: Store,
    address: Address,
    standing: StandingLists,
    failing: FailingLists,
    /// The places up to which lists were compared. The store has them up to an hour later, for lists without matches.
    compared: HashMap<ListKey, ComparedPlace>,
}

impl Bells {
    /// Notifies the accounts of a store, whose server has this address.
    pub fn new(store: Store, address: Address) -> Bells {
        Bells {
            store,
            address,
            standing: StandingLists::default(),
            failing: FailingLists::default(),
            compared: HashMap::new(),
        }
    }

    /// Notifies each account of new posts, at most of a page of them by the authors whom it follows, and of
    /// some pages for each list.
    ///
    /// # Errors
    /// [`StoreError`] of the last account whose notifications could not be written; the others are notified.
    pub async fn ring_all(&mut self) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        for account in self.store.read(bell::accounts).await? {
            if let Err(error) = ring(&self.store, account).await {
                outcome = Err(error);
            }
        }
        let entered = self.enter_edited().await;
        self.ring_lists().await.and(entered).and(outcome)
    }

    /// Reads the lists, and gives posts that edits brought into them their entries.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails, or of the last list that failed. The posts are then compared with all
    /// lists again, which changes nothing for the others. A list that fails too often is skipped.
    async fn enter_edited(&mut self) -> Result<(), StoreError> {
        let (store, address) = (&self.store, &self.address);
        let (standing, failing) = (&mut self.standing, &mut self.failing);
        loop {
            let EditBatch { edited, lists } = store.read(EditBatch::read).await?;
            standing.update(lists);
            failing.retain(standing.iter().map(|(list, _)| list.key));
            if edited.is_empty() {
                failing.record_removed_posts();
                return Ok(());
            }
            let is_last = edited.len() < MAX_EDITED as usize;
            let mut by_list = candidates(store, standing, &edited).await?;
            let mut outcome = Ok(());
            let mut skipped = Vec::new();
            for (number, (list, predicate)) in standing.iter().enumerate() {
                let Some(edited) = by_list.remove(&number) else {
                    continue;
                };
                let posts = edited.len();
                match enter(store, address, list, predicate, edited).await? {
                    Ok(()) => failing.record_success(list),
                    Err(error) if failing.record_failure(list, &error) => {
                        skipped.push((list, posts, error));
                    }
                    Err(error) => outcome = Err(error),
                }
            }
            if outcome.is_err() {
                failing.record_kept_posts();
                return outcome;
            }
            let forget = move |tx: &mut Tx<'_>| edited_post::forget(tx, &edited);
            store.write(search::root(), forget).await?;
            failing.record_removed_posts();
            for (list, posts, error) in &skipped {
                failing.record_skipped(list, *posts, error);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Notifies accounts of the new posts that their lists select.
    ///
    /// # Errors
    /// [`StoreError`] of the last list that failed; the others notify.
    async fn ring_lists(&mut self) -> Result<(), StoreError> {
        let now_ms = now_ms();
        let lists = self.standing.iter().enumerate();
        let notifying = lists.filter_map(|(number, (list, predicate))| {
            let notified = list_bell::search_above(list.notified?, now_ms);
            let compared = self.compared.get(&list.key);
            let compared = compared.filter(|compared| compared.list == *list);
            Some(NotifyingList {
                number,
                list: list.clone(),
                predicate: predicate.clone(),
                above: compared.map_or(notified, |compared| notified.max(compared.place)),
            })
        });
        let notifying: Vec<NotifyingList> = notifying.collect();
        let keys: HashSet<ListKey> = notifying.iter().map(|list| list.list.key).collect();
        self.compared.retain(|list, _| keys.contains(list));
        let Some(above) = notifying.iter().map(|list| list.above).min() else {
            return Ok(());
        };
        let News { end, posts } = self.store.read(move |tx| News::read(tx, above)).await?;
        let candidates = posts.map(|posts| {
            let lists = posts.iter().flat_map(|post| self.standing.candidates(post));
            lists.collect::<BTreeSet<usize>>()
        });
        let mut readers = HashSet::new();
        let mut outcome = Ok(());
        for mut list in notifying.into_iter().filter(|list| list.above < end) {
            let account = list.list.key.account;
            if !readers.contains(&account) {
                let read = move |tx: &mut Tx<'_>| list_bell::may_read(tx, account);
                match self.store.read(read).await {
                    Ok(true) => readers.insert(account),
                    Ok(false) => continue,
                    Err(error) => {
                        outcome = Err(error);
                        continue;
                    }
                };
            }
            let may_match = candidates
                .as_ref()
                .is_none_or(|lists| lists.contains(&list.number));
            let compared = match may_match {
                true => self.ring_list(&mut list, end).await,
                false => self.pass(&mut list, end).await,
            };
            match compared {
                Ok(()) => {
                    let place = list.above;
                    let list = list.list;
                    self.compared
                        .insert(list.key, ComparedPlace { list, place });
                }
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    /// Notifies of the new posts up to `end` that a list selects, of at most [`MAX_PAGES`] pages, and raises the
    /// list's places.
    async fn ring_list(&self, list: &mut NotifyingList, end: LocalId) -> Result<(), StoreError> {
        for _ in 0..MAX_PAGES {
            let now_ms = now_ms();
            let Ok(search) = Search::new(list.predicate.clone(), &self.address) else {
                list.above = end;
                return Ok(());
            };
            let (known, above) = (list.list.clone(), list.above);
            let find = move |tx: &mut Tx<'_>| {
                let range = Range {
                    min: Some(above),
                    max: end.raw().checked_add(1).map(LocalId::new),
                    limit: bell::MAX_POSTS,
                    ..Range::default()
                };
                let viewer = Viewer::Account(known.key.account);
                let found = search.stretch(tx, &range, viewer, now_ms)?;
                let is_full = found.posts.len() >= usize::from(bell::MAX_POSTS);
                let newest = found.posts.first().filter(|_| is_full);
                let stopped_at = found.rest.and_then(|rest| rest.min);
                Ok::<_, StoreError>(NewMatches {
                    list: known.clone(),
                    above,
                    reached: stopped_at.or(newest.map(|post| post.id)).unwrap_or(end),
                    posts: found.posts,
                })
            };
            let matches = self.store.read(find).await?;
            let is_accepted = self.write(list, matches, now_ms).await?;
            if !is_accepted || list.above >= end {
                break;
            }
        }
        Ok(())
    }

    /// Records that a list selects none of the new posts up to `end`.
    async fn pass(&self, list: &mut NotifyingList, end: LocalId) -> Result<(), StoreError> {
        let matches = NewMatches {
            list: list.list.clone(),
            above: list.above,
            posts: Vec::new(),
            reached: end,
        };
        self.write(list, matches, now_ms()).await?;
        Ok(())
    }

    /// Writes the notifications of a list's matches, if there is something to write, and raises the list's places.
    /// Returns false if the store refused the matches because the list is not the same any more: the places stay, and
    /// the next turn begins with the list as it is then.
    async fn write(
        &self,
        list: &mut NotifyingList,
        matches: NewMatches,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let reached = matches.reached;
        if matches.is_worth_writing() {
            let root = local_account::root(matches.list.key.account);
            let ring = move |tx: &mut Tx<'_>| list_bell::ring(tx, &matches, now_ms);
            if self.store.write(root, ring).await?.is_none() {
                return Ok(false);
            }
            list.list.notified = Some(reached);
        }
        list.above = reached;
        Ok(true)
    }
}

/// The place up to which a list was compared with new posts. It is valid while the list has the same predicate and
/// notified place. Otherwise the user has changed the list, or another process has notified.
#[derive(Debug)]
struct ComparedPlace {
    /// The list that was compared, with its notified place after the comparison.
    list: StandingList,
    place: LocalId,
}

/// A list that notifies.
struct NotifyingList {
    /// Its number among the standing lists.
    number: usize,
    list: StandingList,
    predicate: Predicate,
    /// The place above which its posts are searched.
    above: LocalId,
}

/// The posts above the lowest place up to which lists have notified.
struct News {
    /// The place up to which all posts are visible.
    end: LocalId,
    /// Their features; `None` if there are too many of them to compare them with all lists first.
    posts: Option<Vec<search::PostFeatures>>,
}

impl News {
    fn read(tx: &mut Tx<'_>, above: LocalId) -> Result<News, StoreError> {
        let end = search::end(tx)?;
        let posts = match above < end {
            true => search::new_posts(tx, above, end, MAX_NEW)?,
            false => Vec::new(),
        };
        let is_all = posts.len() < MAX_NEW as usize;
        let posts = is_all.then(|| search::features(tx, &posts)).transpose()?;
        Ok(News { end, posts })
    }
}

/// Edited posts, and the lists that they have to be compared with.
struct EditBatch {
    edited: Vec<EditedPost>,
    lists: Vec<StandingList>,
}

impl EditBatch {
    fn read(tx: &mut Tx<'_>) -> Result<EditBatch, StoreError> {
        // The posts are read first. So each list that is not seen here is saved after these edits.
        let edited = edited_post::edited(tx, MAX_EDITED)?;
        let lists = list_bell::standing_lists(tx)?;
        Ok(EditBatch { edited, lists })
    }
}

/// The edited posts with which each list has to be compared, by the numbers of the lists.
async fn candidates(
    store: &Store,
    standing: &StandingLists,
    edited: &[EditedPost],
) -> Result<BTreeMap<usize, Vec<EditedPost>>, StoreError> {
    let keys: Vec<_> = edited.iter().map(|post| post.key).collect();
    let read = move |tx: &mut Tx<'_>| search::features(tx, &keys);
    let features = store.read(read).await?;
    let mut by_list: BTreeMap<usize, Vec<EditedPost>> = BTreeMap::new();
    for post in &features {
        let of_group = edited.iter().filter(|edit| post.posts.contains(&edit.key));
        let of_group: Vec<EditedPost> = of_group.copied().collect();
        for list in standing.candidates(post) {
            by_list.entry(list).or_default().extend(&of_group);
        }
    }
    Ok(by_list)
}

/// Gives a list entries of the posts that edits brought into it.
///
/// # Errors
/// [`StoreError`] if the store cannot be written. The inner error may concern the list alone.
async fn enter(
    store: &Store,
    address: &Address,
    list: &StandingList,
    predicate: &Predicate,
    edited: Vec<EditedPost>,
) -> Result<Result<(), StoreError>, StoreError> {
    let account = list.key.account;
    let Ok(search) = Search::new(predicate.clone(), address) else {
        return Ok(Ok(()));
    };
    let now_ms = now_ms();
    let read = move |tx: &mut Tx<'_>| {
        search.selected_by_edits(tx, &edited, Viewer::Account(account), now_ms)
    };
    let posts = match store.read(read).await {
        Ok(posts) => posts,
        Err(error) => return Ok(Err(error)),
    };
    if posts.is_empty() {
        return Ok(Ok(()));
    }
    let list = list.clone();
    let enter = move |tx: &mut Tx<'_>| list_bell::enter(tx, &list, posts.clone(), now_ms);
    match store.write(local_account::root(account), enter).await {
        // A full disk, for example, concerns every list.
        Err(error) if error.is_outage() => Err(error),
        entered => Ok(entered),
    }
}

async fn ring(store: &Store, account: LocalAccountId) -> Result<(), StoreError> {
    // Most have nothing new, and writes wait for each other.
    if !store.read(move |tx| bell::is_due(tx, account)).await? {
        return Ok(());
    }
    let now_ms = now_ms();
    let ring = move |tx: &mut Tx<'_>| bell::ring(tx, account, &is_no_reply_to_others, now_ms);
    store.write(local_account::root(account), ring).await?;
    Ok(())
}

/// As on Mastodon, replies to others are not notified.
fn is_no_reply_to_others(post: &TimelinePost) -> bool {
    reply_to(&post.raw).is_none()
}

const EVERY: Duration = Duration::from_secs(5);
const FORGET_EVERY: Duration = Duration::from_secs(60);
/// The number of edited posts that are compared with the lists at once.
const MAX_EDITED: u32 = 200;
/// The number of new posts that are compared with all lists at once. With more of them, each list is
/// searched.
const MAX_NEW: u32 = 2_000;
/// The number of pages that a list notifies of at once, before the next list does.
const MAX_PAGES: usize = 25;

#[cfg(test)]
mod tests;
