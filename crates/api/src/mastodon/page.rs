//! Pages of posts, as they are answered.

use std::collections::HashMap;

use axum::response::Response;
use driftline_store::{
    InstanceId, LocalId, StoreError, Tx,
    instance::{self, Instance},
    timeline::{Range, Stretch, TimelinePost},
};
use serde_json::value::RawValue;

use super::{
    answer,
    page_query::{Ends, PageQuery, ends},
    statuses::{
        entity_template::{EntityTemplate, Overlays},
        local_references::LocalReferences,
    },
    view::View,
};
use crate::{
    auth::RequestContext,
    transport::{ApiError, ApiResult},
};

/// The body of a page and its range.
pub(crate) struct Page {
    body: Vec<u8>,
    /// The newest and the oldest ID; `None` if it is empty.
    ends: Option<Ends>,
}

impl Page {
    /// A page of what `stretch` reads, of as many reads as fill it: mostly one. The others are made in the
    /// viewer's turn. None is held up for long, and a client that has gone away ends them. Not found where
    /// `stretch` finds no timeline.
    pub(crate) async fn picked(
        context: &RequestContext,
        range: Range,
        stretch: impl Fn(&mut Tx<'_>, &Range) -> Result<Option<Stretch>, StoreError>
        + Clone
        + Send
        + 'static,
    ) -> ApiResult<Self> {
        let view = View::new(context);
        let first = stretch.clone();
        let first = context.read(move |tx| {
            let Some(read) = first(tx, &range)? else {
                return Ok(None);
            };
            Ok(Some(match read.rest {
                Some(_) => FirstRead::Part(read),
                None => FirstRead::Whole(Self::write(tx, &read.posts, &view)?),
            }))
        });
        let mut read = match first.await?.ok_or(ApiError::NotFound)? {
            FirstRead::Whole(page) => return Ok(page),
            FirstRead::Part(read) => read,
        };
        while let Some(range) = read.rest {
            let stretch = stretch.clone();
            let next = context.long_read(move |tx| stretch(tx, &range)).await?;
            read.add(next.ok_or(ApiError::NotFound)?);
        }
        Self::of_posts(context, read.posts).await
    }

    /// A page of posts that were read.
    pub(crate) async fn of_posts(
        context: &RequestContext,
        posts: Vec<TimelinePost>,
    ) -> ApiResult<Self> {
        let view = View::new(context);
        context.read(move |tx| Self::write(tx, &posts, &view)).await
    }

    /// A page of a part of a timeline, whose neighbour in the direction of the range begins where the
    /// part stopped.
    pub(crate) async fn of_part(
        context: &RequestContext,
        range: Range,
        part: Stretch,
    ) -> ApiResult<Self> {
        let stopped_at = part.stopped_at();
        let page = Self::of_posts(context, part.posts).await?;
        let Some(stopped_at) = stopped_at else {
            return Ok(page);
        };
        let (newest, oldest) = page.ends.unwrap_or((stopped_at, stopped_at));
        let ends = match range.min {
            Some(_) => (stopped_at, oldest),
            None => (newest, stopped_at),
        };
        Ok(page.by(Some(ends)))
    }

    /// A page without posts.
    pub(crate) fn empty() -> Self {
        Self {
            body: b"[]".to_vec(),
            ends: None,
        }
    }

    pub(crate) fn write(
        tx: &mut Tx<'_>,
        posts: &[TimelinePost],
        view: &View,
    ) -> Result<Self, StoreError> {
        let body = Self::render(tx, posts, view, |_, shown, local, overlays| {
            EntityTemplate::list(shown, local, overlays)
        })?;
        let ends = ends(posts, |post| post.id);
        Ok(Self { body, ends })
    }

    /// The entity `Status` of each post, by [`TimelinePost::id`].
    pub(crate) fn entities<'p>(
        tx: &mut Tx<'_>,
        posts: impl IntoIterator<Item = &'p TimelinePost>,
        view: &View,
    ) -> Result<HashMap<LocalId, Box<RawValue>>, StoreError> {
        Self::render(tx, posts, view, |posts, shown, local, overlays| {
            let entities = posts.iter().zip(shown).filter_map(|(post, shown)| {
                // The entity is about as long as the stored one.
                let mut body = Vec::with_capacity(post.raw.len());
                shown.write(&mut body, local, overlays);
                Some((post.id, answer::raw(body)?))
            });
            entities.collect()
        })
    }

    /// Calls `write` with posts, with what is shown of them, and with what that needs to be written.
    fn render<'p, T>(
        tx: &mut Tx<'_>,
        posts: impl IntoIterator<Item = &'p TimelinePost>,
        view: &View,
        write: impl FnOnce(
            &[&TimelinePost],
            &[EntityTemplate],
            &LocalReferences,
            Option<&Overlays>,
        ) -> T,
    ) -> Result<T, StoreError> {
        let instances: HashMap<InstanceId, Instance> = instance::all(tx)?
            .into_iter()
            .map(|instance| (instance.id, instance))
            .collect();
        let shown = posts.into_iter().filter_map(|post| {
            let instance = instances.get(&post.instance)?;
            Some((post, EntityTemplate::status(post, instance, &view.address)))
        });
        let (known, shown): (Vec<&TimelinePost>, Vec<EntityTemplate>) = shown.unzip();
        view.write(tx, &known, &shown, HashMap::new(), |local, overlays| {
            write(&known, &shown, local, overlays)
        })
    }

    /// The same page by other IDs than the posts' own.
    pub(crate) fn by(self, ends: Option<Ends>) -> Self {
        Self { ends, ..self }
    }

    pub(crate) fn answer(self, query: &PageQuery) -> Response {
        query.with_link(answer::written(self.body), self.ends)
    }
}

/// What the first read of a page brought.
enum FirstRead {
    /// All of it.
    Whole(Page),
    /// A part.
    Part(Stretch),
}
