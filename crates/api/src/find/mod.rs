//! Searches by predicates, for one viewer.

mod budget;
mod edits;
mod saved_timeline;
mod selection;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use driftline_core::{
    feed::ChangeKind,
    names::acct::AcctKey,
    predicate::{
        Acct, Condition, Folding, IdMask, LimitError, Matcher, NameContext, NeededFacts,
        ParseError, PostTrait, Predicate, Proposition, Term, Tree, Usage, UsageError, Word,
        WordMatch,
    },
};
use driftline_store::{
    AccountId, LocalId, Store, StoreError, Tx, account, instance,
    search::{self, Lookup},
    social::{list_entry::ListKey, local_account},
    timeline::{self, Pick as _, Range, Stretch, TimelinePost, Viewer},
    viewer::ReadableSources,
};

use parking_lot::Mutex;

use crate::{
    auth::RequestContext,
    feed::FeedEvent,
    mastodon::timelines::hidden_posts::HiddenPosts,
    transport::{Address, ApiError, ApiResult},
};
pub(crate) use selection::Selection;

pub use budget::SearchBudget;
pub use saved_timeline::SavedTimeline;

/// A predicate that is searched for.
#[derive(Debug)]
pub struct Search {
    predicate: Predicate,
    matcher: Matcher,
    /// The address of this server, by whose host other servers name its accounts.
    address: Address,
    /// The facts that the matcher reads.
    needed: NeededFacts,
    /// The look-up in the index; `None` before the first part is read.
    lookup: Mutex<Option<Lookup>>,
    /// The list whose timeline it reads, with the entries of the list.
    list: Option<ListKey>,
}

/// The reason why a text or a predicate is not searched for.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The text is not a predicate.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The predicate has a term that searches do not accept.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// The predicate is too large.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl Search {
    /// Prepares a predicate for the server with this address. Copies of the server's accounts are hidden
    /// from viewers who mute or block the accounts.
    ///
    /// # Errors
    /// [`SearchError::Usage`] if it has a term that searches do not accept.
    pub fn new(predicate: Predicate, address: &Address) -> Result<Search, SearchError> {
        predicate.validate(Usage::Search)?;
        let matcher = Matcher::new(&predicate);
        Ok(Search {
            needed: predicate.needed_facts(),
            predicate,
            matcher,
            address: address.clone(),
            lookup: Mutex::new(None),
            list: None,
        })
    }

    /// Reads a predicate from its text form, as a caller wrote it.
    ///
    /// # Errors
    /// [`SearchError`] if the text is not a predicate that can be searched for.
    pub(crate) async fn parse(text: &str, caller: &RequestContext) -> Result<Search, SearchError> {
        Search::new(parse(text, caller).await?, &caller.address)
    }

    /// Prepares a tree that was made here.
    ///
    /// # Errors
    /// [`SearchError::Limit`] if it is too large.
    pub(crate) fn for_tree(tree: Tree, address: &Address) -> Result<Search, SearchError> {
        Search::new(Predicate::new(tree, Folding::NEWEST)?, address)
    }

    /// Searches for a whole text as one word.
    ///
    /// # Errors
    /// [`SearchError::Limit`] if the text is too long.
    pub(crate) fn for_text(text: &str, address: &Address) -> Result<Search, SearchError> {
        let word = Word::new(text, WordMatch::Folded).ok().map(Term::Word);
        let tree = Tree::Atom(word.map(Proposition::from).unwrap_or_default());
        Search::for_tree(tree, address)
    }

    /// Limits the search to the posts of an author. `None` if no stored post is by that author, or
    /// the predicate gets too large.
    ///
    /// # Errors
    /// [`ApiError`] if the store fails.
    pub(crate) async fn by_author(
        self,
        caller: &RequestContext,
        author: AccountId,
    ) -> ApiResult<Option<Search>> {
        let named = caller.read(move |tx| {
            let Some((instance, acct)) = account::names(tx, &[author])?.remove(&author) else {
                return Ok(None);
            };
            let instance = instance::by_id(tx, instance)?;
            Ok::<_, StoreError>(instance.and_then(|of| AcctKey::new(&acct, &of.origin)))
        });
        let acct = named.await?.and_then(|key| Acct::new(key.as_str()));
        let Some(acct) = acct else {
            return Ok(None);
        };
        let id = Some(author.raw());
        let by_author = Tree::atom(Term::Author(IdMask { acct, id }));
        let tree = Tree::And(Box::new(by_author), Box::new(self.predicate.tree().clone()));
        let predicate = Predicate::new(tree, self.predicate.folding());
        let search = predicate
            .ok()
            .and_then(|predicate| Search::new(predicate, &caller.address).ok());
        Ok(search)
    }

    /// The predicate.
    pub fn predicate(&self) -> &Predicate {
        &self.predicate
    }

    /// Returns a part of the posts that the predicate selects among all that a viewer may read, each
    /// at the viewer's place for it. A search is of one viewer.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub fn stretch(
        &self,
        tx: &mut Tx<'_>,
        range: &Range,
        viewer: Viewer,
        now_ms: i64,
    ) -> Result<Stretch, StoreError> {
        let readable = ReadableSources::load(tx, viewer)?;
        let mut selection = self.selection(tx, &readable, now_ms)?;
        selection.left_out = self.list;
        let known = self.lookup.lock().clone();
        let lookup = match known {
            Some(lookup) => lookup,
            None => search::lookup(tx, &readable, &self.predicate)?,
        };
        *self.lookup.lock() = Some(lookup.clone());
        let found = search::find(tx, range, &readable, &lookup, &selection)?;
        match self.list {
            Some(list) => {
                selection.left_out = None;
                saved_timeline::with_entries(tx, list, range, found, &selection)
            }
            None => Ok(found),
        }
    }

    /// Returns the post that the predicate selects at the viewer's place for a post or a copy of it;
    /// `None` if the viewer may not read it, or the predicate does not select it.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub(crate) fn selected(
        &self,
        tx: &mut Tx<'_>,
        post: LocalId,
        viewer: Viewer,
        now_ms: i64,
    ) -> Result<Option<TimelinePost>, StoreError> {
        let Some(post) = timeline::at_its_place(tx, post, viewer)? else {
            return Ok(None);
        };
        let readable = ReadableSources::load(tx, viewer)?;
        let selection = self.selection(tx, &readable, now_ms)?;
        Ok(selection.pick(tx, vec![post])?.pop())
    }

    /// Returns for each change whether the predicate selects the post for a viewer. The source's own
    /// copy is compared, without the index. A deletion is always selected, since its post has no text.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub fn selects(
        &self,
        tx: &mut Tx<'_>,
        events: &[Arc<FeedEvent>],
        viewer: Viewer,
        now_ms: i64,
    ) -> Result<Vec<bool>, StoreError> {
        let readable = ReadableSources::load(tx, viewer)?;
        let copies: Vec<_> = events.iter().map(|event| event.own_copy()).collect();
        let has_copy: Vec<bool> = copies.iter().map(Option::is_some).collect();
        let mut posts: Vec<TimelinePost> = copies.into_iter().flatten().collect();
        if self.names_sources() {
            let keys: Vec<_> = posts.iter().map(TimelinePost::key).collect();
            let copies = timeline::copies_of(tx, &keys, &readable)?;
            for post in &mut posts {
                post.copies = copies.get(&post.post_id).cloned().unwrap_or_default();
            }
        }
        let selection = self.selection(tx, &readable, now_ms)?;
        let mut selected = selection.selected(tx, &posts)?.into_iter();
        let events = events.iter().zip(has_copy);
        Ok(events
            .map(|(event, has_copy)| {
                let is_selected = has_copy && selected.next().unwrap_or_default();
                is_selected || event.change.kind == ChangeKind::Delete
            })
            .collect())
    }

    /// Selects matching posts, without those that the viewer does not want to see.
    fn selection<'s>(
        &'s self,
        tx: &mut Tx<'_>,
        readable: &'s ReadableSources,
        now_ms: i64,
    ) -> Result<Selection<'s>, StoreError> {
        let hidden = HiddenPosts::ask(tx, readable.viewer(), now_ms, &self.address)?;
        let hidden = hidden.read(tx)?;
        Selection::load(tx, self, readable, hidden)
    }

    /// True if the predicate has a term `source:`, which copies decide, too.
    fn names_sources(&self) -> bool {
        self.conditions()
            .any(|condition| matches!(condition, Condition::Source(_)))
    }

    /// True if the predicate has a term `is:followed`, which the viewer's follows decide.
    fn names_followed(&self) -> bool {
        self.conditions()
            .any(|condition| *condition == Condition::Is(PostTrait::Followed))
    }

    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        let propositions = self.predicate.tree().propositions().into_iter();
        propositions.filter_map(|proposition| proposition.condition.as_ref())
    }

    /// Returns the posts of a range, by as many reads as they take, or a part of them once the budget is
    /// spent.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub async fn read(
        self: &Arc<Self>,
        store: &Store,
        viewer: Viewer,
        range: Range,
        now_ms: i64,
        budget: &mut SearchBudget,
    ) -> Result<Stretch, StoreError> {
        let mut read = Stretch::unread(range);
        while let Some(range) = read.rest {
            let part = store.read(self.timed_stretch(range, viewer, now_ms));
            let (part, time) = part.await?;
            read.add(part);
            budget.spend(time);
            if budget.is_spent() {
                break;
            }
        }
        Ok(read)
    }

    /// [`Search::stretch`], with the time that it took.
    fn timed_stretch(
        self: &Arc<Self>,
        range: Range,
        viewer: Viewer,
        now_ms: i64,
    ) -> impl FnMut(&mut Tx<'_>) -> Result<(Stretch, Duration), StoreError> + Send + 'static + use<>
    {
        let search = Arc::clone(self);
        move |tx| {
            let begun = Instant::now();
            let part = search.stretch(tx, &range, viewer, now_ms)?;
            Ok((part, begun.elapsed()))
        }
    }

    /// [`Search::read`] for a request, whose answer says where its rest begins. All parts but the first one are read in the
    /// caller's turn.
    ///
    /// # Errors
    /// [`ApiError::NotReady`] if the turn does not come in time; another [`ApiError`] if the store fails.
    pub(crate) async fn read_part(
        self,
        caller: &RequestContext,
        range: Range,
        mut budget: SearchBudget,
    ) -> ApiResult<Stretch> {
        let (search, now_ms) = (Arc::new(self), caller.now_ms());
        let part = search.timed_stretch(range, caller.viewer, now_ms);
        let (mut read, time) = caller.read(part).await?;
        budget.spend(time);
        while let Some(range) = read.rest
            && !budget.is_spent()
        {
            let part = search.timed_stretch(range, caller.viewer, now_ms);
            let (part, time) = caller.long_read(part).await?;
            read.add(part);
            budget.spend(time);
        }
        Ok(read)
    }

    /// Returns all posts of a range, for an answer that cannot say that it is only a part.
    ///
    /// # Errors
    /// [`ApiError`] if the range is too long for a request, or the store fails.
    pub(crate) async fn posts(
        self,
        caller: &RequestContext,
        range: Range,
    ) -> ApiResult<Vec<TimelinePost>> {
        let budget = caller.app.search_budget;
        let read = self.read_part(caller, range, budget).await?;
        match read.rest {
            None => Ok(read.posts),
            Some(_) => Err(StoreError::SearchTooLong.into()),
        }
    }
}

/// Reads a predicate that is kept from its text form.
///
/// # Errors
/// [`SearchError`] if the text is not a predicate that can be saved.
pub(crate) async fn saved(text: &str, caller: &RequestContext) -> Result<Predicate, SearchError> {
    let predicate = parse(text, caller).await?;
    predicate.validate(Usage::Saved)?;
    Ok(predicate)
}

async fn parse(text: &str, caller: &RequestContext) -> Result<Predicate, ParseError> {
    let name = match caller.viewer {
        Viewer::Account(id) => {
            let found = caller.read(move |tx| local_account::by_id(tx, id)).await;
            found.ok().flatten().map(|account| account.name.to_string())
        }
        Viewer::Anonymous | Viewer::Operator => None,
    };
    let names = NameContext {
        origin: &caller.address.url(""),
        viewer: name.as_deref(),
    };
    Predicate::parse(text, &names)
}

/// The answer to a query that is not searched for.
pub(crate) fn bad_query(error: &SearchError) -> ApiError {
    ApiError::BadParameter(format!("q: {error}"))
}
