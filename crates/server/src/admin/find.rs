//! The commands that find posts by predicates.

use std::{collections::HashMap, sync::Arc};

use driftline_api::find::{Search, SearchBudget};
use driftline_core::{
    predicate::{Condition, NameContext, Predicate, SourceName, Term, Tree, Usage},
    social::AccountName,
};
use driftline_mastodon::{StatedFacts, viewer};
use driftline_runtime::{CommandError, IndexBacklog, now_ms};
use driftline_store::{
    InstanceId, LocalId, StoreError, instance, search,
    timeline::{Range, Stretch, TimelinePost},
    viewer::ReadableSources,
};
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::{ExplainFind, FindPlan, FindPosts, FoundPost, FoundPosts, Host, readable};
use crate::index_keeper::index_all;

/// A portion of the posts.
pub(super) async fn find(host: &Host, request: FindPosts) -> Result<FoundPosts, CommandError> {
    let search = Arc::new(prepared(host, &request.query, request.source.as_deref()).await?);
    let viewer = host.viewer;
    if host.process.is_none() {
        // No server keeps the index. A search checks what is left, also in a store that is only read.
        let (_stop, is_stopped) = watch::channel(false);
        let _ = index_all(&host.store, &IndexBacklog::default(), &is_stopped).await;
    }
    let mut range = Range {
        max: request.below,
        min: request.above,
        limit: request.limit.clamp(1, MAX_LIMIT),
        ..Range::default()
    };
    let end = host.store.read(search::end).await?;
    let mut budget = SearchBudget::PORTION;
    if request.only_count {
        range.limit = MAX_LIMIT;
    }
    let (mut count, mut newest) = (0, None);
    let (posts, next) = loop {
        let part = search.read(&host.store, viewer, range, now_ms(), &mut budget);
        let part = part.await?;
        let next = next_place(&range, &part);
        count += part.posts.len() as u64;
        newest = newest.max(part.posts.first().map(|post| post.id));
        if !request.only_count {
            break (part.posts, next);
        }
        match next {
            Some(next) if !budget.is_spent() => range = after(range, next),
            next => break (Vec::new(), next),
        }
    };
    let origins: HashMap<InstanceId, String> = host
        .store
        .read(instance::all)
        .await?
        .into_iter()
        .map(|instance| (instance.id, instance.origin))
        .collect();
    let found = posts.iter().map(|post| shown(post, &origins));
    Ok(FoundPosts {
        count,
        posts: found.collect::<Result<_, _>>()?,
        next,
        end: match (request.above, next) {
            (Some(_), Some(next)) => next,
            _ => newest.map_or(end, |newest: LocalId| newest.max(end)),
        },
    })
}

/// The place after which the search for the posts of a range goes on; `None` after the last post.
fn next_place(range: &Range, part: &Stretch) -> Option<LocalId> {
    let is_full = part.posts.len() >= usize::from(range.limit);
    let last = match range.min {
        Some(_) => part.posts.first(),
        None => part.posts.last(),
    };
    let last = last.filter(|_| is_full).map(|post| post.id);
    part.stopped_at().or(last)
}

fn after(range: Range, place: LocalId) -> Range {
    match range.min {
        Some(_) => Range {
            min: Some(place),
            ..range
        },
        None => Range {
            max: Some(place),
            ..range
        },
    }
}

/// Explains the look-up in the index.
pub(super) async fn explain(host: &Host, request: ExplainFind) -> Result<FindPlan, CommandError> {
    let search = prepared(host, &request.query, request.source.as_deref()).await?;
    let predicate = search.predicate().canonical();
    let (viewer, asked) = (host.viewer, predicate.clone());
    let (lookup, waiting) = host
        .store
        .read(move |tx| {
            let readable = ReadableSources::load(tx, viewer)?;
            let lookup = search::explain(tx, &readable, &asked)?;
            Ok::<_, StoreError>((lookup, search::pending(tx, u32::MAX)?))
        })
        .await?;
    Ok(FindPlan {
        predicate: predicate.to_string(),
        lookup,
        waiting,
    })
}

/// Reads a predicate as an account, or the operator, wrote it for a use.
///
/// # Errors
/// [`CommandError`] with the column of the first problem and its remedy, or with the first term that
/// the use refuses.
pub fn read_query(
    query: &str,
    account: Option<&AccountName>,
    usage: Usage,
) -> Result<Predicate, CommandError> {
    let viewer = account.map(ToString::to_string);
    let names = NameContext {
        origin: "",
        viewer: viewer.as_deref(),
    };
    let predicate = Predicate::parse(query, &names);
    let predicate = predicate.map_err(|error| {
        let hint = error.problem.hint();
        CommandError::usage(format!("{error}. {hint}"))
    })?;
    predicate.validate(usage).map_err(CommandError::usage)?;
    Ok(predicate)
}

/// Prepares a search of the host's viewer, in one source or in all.
pub(super) async fn prepared(
    host: &Host,
    query: &str,
    source: Option<&str>,
) -> Result<Search, CommandError> {
    let mut predicate = read_query(query, host.account.as_ref(), Usage::Search)?;
    if let Some(name) = source {
        let source = readable(host, name).await?;
        let name = SourceName::new(&source.name)
            .ok_or_else(|| CommandError::usage(format!("invalid source name {name:?}")))?;
        let term = Term::Condition(Condition::Source(name));
        let both = Tree::And(
            Box::new(Tree::atom(term)),
            Box::new(predicate.tree().clone()),
        );
        predicate = Predicate::new(both, predicate.folding()).map_err(CommandError::usage)?;
    }
    Search::new(predicate, &host.address).map_err(CommandError::usage)
}

fn shown(
    post: &TimelinePost,
    origins: &HashMap<InstanceId, String>,
) -> Result<FoundPost, CommandError> {
    let instance = origins.get(&post.instance).cloned().unwrap_or_default();
    let stated = StatedFacts::read(&post.raw, &instance);
    // Earlier versions stored parts that concern the account whose token read the post.
    let status = viewer::without(post.raw.clone());
    Ok(FoundPost {
        id: post.id,
        uri: post.uri.clone(),
        url: post.url.clone(),
        author: stated.author,
        created_at_ms: post.created_at_ms,
        visibility: post.visibility,
        text: stated.entries.join("\n\n"),
        status: RawValue::from_string(status).map_err(CommandError::failed)?,
        instance,
    })
}

const MAX_LIMIT: u16 = 1_000;
