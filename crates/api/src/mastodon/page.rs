//! Pages of posts, as they are answered.

use std::{collections::HashMap, sync::Arc};

use axum::{
    http::header::{CONTENT_TYPE, LINK},
    response::{IntoResponse, Response},
};
use driftline_store::{
    InstanceId, LocalId, StoreError, Tx,
    instance::{self, Instance},
    timeline::{Range, Stretch, TimelinePost, Viewer},
    viewer::ReadableSources,
};
use serde_json::value::RawValue;

use super::{
    JSON, answer,
    page_query::PageQuery,
    statuses::{
        local_references::LocalReferences,
        status::{Overlays, Shown},
    },
    view::View,
};
use crate::{
    App,
    transport::{Address, ApiError},
};

/// The body of a page and its range.
pub(crate) struct Page {
    body: Vec<u8>,
    /// The newest and the oldest ID; `None` if it is empty.
    ends: Option<(LocalId, LocalId)>,
}

impl Page {
    /// A page of what `stretch` reads, of as many reads as fill it: mostly one. None is held up for long, and a
    /// client that has gone away ends them. Not found where `stretch` finds no timeline.
    pub(crate) async fn picked(
        app: &App,
        range: Range,
        viewer: Viewer,
        stretch: impl Fn(&mut Tx<'_>, &Range) -> Result<Option<Stretch>, StoreError>
        + Clone
        + Send
        + 'static,
    ) -> Result<Self, ApiError> {
        let view = View::of(app, viewer);
        let of_rest = view.clone();
        let first = stretch.clone();
        let first = answer::read(app, move |tx| {
            let Some(read) = first(tx, &range)? else {
                return Ok(None);
            };
            if let Some(rest) = read.rest {
                return Ok(Some(FirstRead::Part(read.posts, rest)));
            }
            Ok(Some(FirstRead::Whole(Self::write(tx, &read.posts, &view)?)))
        });
        let (mut posts, rest) = match first.await?.ok_or(ApiError::NotFound)? {
            FirstRead::Whole(page) => return Ok(page),
            FirstRead::Part(posts, rest) => (posts, rest),
        };
        let mut next = Some(rest);
        while let Some(range) = next {
            let stretch = stretch.clone();
            let read = app.store.read(move |tx| stretch(tx, &range)).await?;
            let mut read = read.ok_or(ApiError::NotFound)?;
            match range.min {
                // Upward, what is read later is newer.
                Some(_) => posts.splice(0..0, read.posts).for_each(drop),
                None => posts.append(&mut read.posts),
            }
            next = read.rest;
        }
        let posts: Arc<[TimelinePost]> = posts.into();
        answer::read(app, move |tx| Self::write(tx, &posts, &of_rest)).await
    }

    pub(crate) fn write(
        tx: &mut Tx<'_>,
        posts: &[TimelinePost],
        view: &View,
    ) -> Result<Self, StoreError> {
        let body = Self::shown(tx, posts, view, |_, shown, local, overlays| {
            Shown::list(shown, local, overlays)
        })?;
        let ends = posts.first().zip(posts.last());
        Ok(Self {
            body,
            ends: ends.map(|(newest, oldest)| (newest.id, oldest.id)),
        })
    }

    /// The entity `Status` of each post, by [`TimelinePost::id`].
    pub(crate) fn entities(
        tx: &mut Tx<'_>,
        posts: &[TimelinePost],
        view: &View,
    ) -> Result<HashMap<LocalId, Box<RawValue>>, StoreError> {
        Self::shown(tx, posts, view, |posts, shown, local, overlays| {
            let entities = posts.iter().zip(shown).filter_map(|(post, shown)| {
                let mut body = Vec::new();
                shown.write(&mut body, local, overlays);
                let json = String::from_utf8(body).ok()?;
                Some((post.id, RawValue::from_string(json).ok()?))
            });
            entities.collect()
        })
    }

    /// Calls `write` with posts, with what is shown of them, and with what that needs to be written.
    fn shown<T>(
        tx: &mut Tx<'_>,
        posts: &[TimelinePost],
        view: &View,
        write: impl FnOnce(&[&TimelinePost], &[Shown], &LocalReferences, Option<&Overlays>) -> T,
    ) -> Result<T, StoreError> {
        let readable = ReadableSources::ask(tx, view.viewer)?;
        let instances: HashMap<InstanceId, Instance> = instance::all(tx)?
            .into_iter()
            .map(|instance| (instance.id, instance))
            .collect();
        let shown = posts.iter().filter_map(|post| {
            let instance = instances.get(&post.instance)?;
            Some((post, Shown::status(post, instance)))
        });
        let (known, shown): (Vec<&TimelinePost>, Vec<Shown>) = shown.unzip();
        let readable = readable.read(tx)?;
        let references = LocalReferences::ask(tx, &shown)?;
        let overlays = view.ask(tx, &shown)?;
        let local = references.read(tx, &readable)?;
        let overlays = view.overlays(tx, overlays, (&known, &shown), &local, &readable)?;
        Ok(write(&known, &shown, &local, overlays.as_ref()))
    }

    /// The same page by other IDs than the posts' own.
    pub(crate) fn by(self, ends: Option<(LocalId, LocalId)>) -> Self {
        Self { ends, ..self }
    }

    pub(crate) fn answer(self, address: &Address, path: &str, query: &PageQuery) -> Response {
        let link = self
            .ends
            .and_then(|ends| query.link(&address.of(path), ends));
        let mut response = ([(CONTENT_TYPE, JSON)], self.body).into_response();
        if let Some(link) = link {
            response.headers_mut().insert(LINK, link);
        }
        response
    }
}

/// What the first read of a page brought.
enum FirstRead {
    /// All of it.
    Whole(Page),
    /// A part, with the range of the rest.
    Part(Vec<TimelinePost>, Range),
}
