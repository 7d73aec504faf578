//! The client of X's API, version 2.

mod answer;
mod depth;
mod tweet_json;

use std::sync::Arc;

use driftline_core::{
    answer::{AnswerHeaders, Failure, FailureKind, LookUps, Page, PageRequest},
    upstream_id::{IdOrder, Key, UpstreamId},
};
use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use url::Url;

use self::{answer::TweetPage, depth::Depths};
use crate::{
    Timeline,
    access::{Access, Answer},
    failure,
    items::Items,
};

pub(crate) use self::answer::read_item;

/// X's API, version 2, or a server that speaks it.
///
/// What is particular to it:
/// - Home and mentions are those of the credential's user, who is asked for
///   once.
/// - Lists know no bounds: the client pages down to them (see
///   [`X::page`]).
/// - An edit is a tweet with an ID of its own. `edited_at_ms` of each version
///   is the time of the newest edit, so that an earlier version, looked up
///   again, turns out to be edited.
/// - A look-up of an ID that an edit superseded answers under the ID that was
///   asked for.
#[derive(Debug, Clone)]
pub(crate) struct X {
    pub(crate) access: Access,
    me: Arc<OnceCell<UpstreamId>>,
    depths: Arc<Mutex<Depths>>,
}

impl X {
    pub(crate) fn new(access: Access) -> Self {
        Self {
            access,
            me: Arc::default(),
            depths: Arc::default(),
        }
    }

    /// Reads one page of a timeline.
    ///
    /// A list's pages are asked for from the top and then by tokens. The
    /// client remembers for the pages that it answered with which token goes
    /// on below them, so that a walk down a list takes one request a page;
    /// after a restart it first walks down from the top. A page empty below
    /// its bound says that the list's depth ends, as it does elsewhere. Each of
    /// the requests has the timeouts of one.
    ///
    /// # Errors
    /// A [`Failure`] for anything but a complete list of posts with usable
    /// IDs, and where a bound in a list lies too deep for one walk: the next
    /// request goes on from there.
    pub(crate) async fn page(
        &self,
        timeline: &Timeline,
        request: &PageRequest,
    ) -> Result<Page, Failure> {
        self.access.check_no_min_id(request)?;
        let bounds = self.bounds(request)?;
        let path = self.path(timeline).await?;
        let list = match timeline {
            Timeline::List(id) => Some(id),
            _ => None,
        };
        let limit = usize::from(request.limit.clamp(1, PAGE_LIMIT));
        let mut token = list.and_then(|list| self.token(list, &bounds));
        let mut body_bytes = 0;
        for step in 0..MAX_STEPS {
            let asked = self.page_url(&path, request, list.is_some(), token.as_ref());
            let answer = self.access.fetch(asked).await?;
            body_bytes += answer.metadata.body_bytes;
            let outdated = list.filter(|_| step == 0 && is_refused(&answer));
            if let (Some(list), Some(old)) = (outdated, &token) {
                self.depths.lock().forget(list, &old.after);
                token = None;
                continue;
            }
            if answer.status != StatusCode::OK {
                return Err(self.access.status_failure(&answer));
            }
            let (mut items, next) = self.read_page(&answer, list, &bounds)?;
            let is_empty = items.listed.is_empty() && items.passed.is_empty();
            let Some(next) = next.filter(|_| is_empty) else {
                truncate(&mut items, limit);
                let headers = AnswerHeaders {
                    body_bytes,
                    ..answer.metadata
                };
                return Ok(self.access.page(items, headers));
            };
            token = Some(next);
        }
        let why = format!(
            "{MAX_STEPS} pages of {timeline} in a row hold nothing that was asked for; it is tried again later, and a list goes on from there"
        );
        Err(self.access.failure(FailureKind::TimedOut, why))
    }

    /// What of an answer lies within the bounds, and what goes on below it.
    fn read_page(
        &self,
        answer: &Answer,
        list: Option<&UpstreamId>,
        bounds: &Bounds,
    ) -> Result<(Items, Option<Token>), Failure> {
        let TweetPage { mut items, next } = self.access.read(answer, answer::page)?;
        let reach = match list {
            Some(_) => bounds.cut(&mut items),
            None => Reach::default(),
        };
        let next = next.filter(|_| !reach.is_at_since);
        if let (Some(list), Some(next), Some(oldest)) = (list, &next, &reach.oldest) {
            self.depths.lock().remember(list, oldest, next);
        }
        let next = next.map(|text| Token {
            text,
            after: reach.oldest.unwrap_or_else(Key::highest),
            is_exact: false,
        });
        Ok((items, next))
    }

    /// Looks several different posts up; an answer that says nothing of any of them is a failure.
    pub(crate) async fn look_up_many(&self, ids: Vec<UpstreamId>) -> Result<LookUps, Failure> {
        let answer = self.access.fetch(self.look_up_url(&ids)).await?;
        if answer.status != StatusCode::OK {
            return Err(self.access.look_up_failure(&answer));
        }
        let findings = self
            .access
            .read(&answer, |body| answer::findings(body, ids))?;
        Ok(LookUps {
            findings,
            headers: answer.metadata,
        })
    }

    /// The credential's user, in words; `None` if it is no user's.
    pub(crate) async fn verified_user(&self) -> Result<Option<String>, Failure> {
        let failure = |answer: &_| self.access.status_failure(answer);
        let user = self.access.user(ME, answer::me, failure).await?;
        if user.is_none() {
            // The first tweet of all: whatever is said of it, the answer counts.
            let url = self.access.url("/2/tweets?ids=20");
            self.access.fetch_ok(url).await?;
        }
        Ok(user)
    }

    fn bounds(&self, request: &PageRequest) -> Result<Bounds, Failure> {
        let key = |id: &Option<UpstreamId>| match id {
            Some(id) => {
                self.access.check_number(id)?;
                Ok(IdOrder::Numeric.key(id).ok())
            }
            None => Ok(None),
        };
        Ok(Bounds {
            since: key(&request.since_id)?,
            below: key(&request.max_id)?,
        })
    }

    async fn path(&self, timeline: &Timeline) -> Result<String, Failure> {
        if let Timeline::Account(id) | Timeline::List(id) = timeline {
            self.access.check_number(id)?;
        }
        match timeline {
            Timeline::Home => {
                let me = self.me().await?;
                Ok(format!("/2/users/{me}/timelines/reverse_chronological"))
            }
            Timeline::Mentions => Ok(format!("/2/users/{}/mentions", self.me().await?)),
            Timeline::Account(id) => Ok(format!("/2/users/{id}/tweets")),
            Timeline::List(id) => Ok(format!("/2/lists/{id}/tweets")),
            Timeline::Public | Timeline::Local | Timeline::Remote | Timeline::Tag(_) => {
                Err(self.access.no_timeline(timeline))
            }
        }
    }

    /// The credential's own user. A failure is not kept.
    async fn me(&self) -> Result<&UpstreamId, Failure> {
        let me = self.me.get_or_try_init(|| async {
            let answer = self.access.fetch(self.access.url(ME)).await?;
            if answer.status == StatusCode::OK {
                return Ok(self.access.read(&answer, answer::me)?.0);
            }
            let mut failure = self.access.status_failure(&answer);
            if failure.kind == FailureKind::Unauthorized {
                failure
                    .message
                    .push_str("; home and mentions need a user's credential, not an application's");
            }
            Err(failure)
        });
        me.await
    }

    fn look_up_url(&self, ids: &[UpstreamId]) -> Url {
        let ids: Vec<_> = ids.iter().map(UpstreamId::as_str).collect();
        let mut url = self
            .access
            .url_with("/2/tweets", &[("ids", &ids.join(","))]);
        url.query_pairs_mut().extend_pairs(FIELDS);
        url
    }

    fn page_url(
        &self,
        path: &str,
        request: &PageRequest,
        is_list: bool,
        token: Option<&Token>,
    ) -> Url {
        let is_walk =
            is_list && request.max_id.is_some() && token.is_none_or(|token| !token.is_exact);
        let least = if is_list { 1 } else { MIN_OF_USERS };
        // Pages that are only passed through are as large as they may be.
        let limit = if is_walk { PAGE_LIMIT } else { request.limit };
        let limit = limit.clamp(least, PAGE_LIMIT).to_string();
        let mut url = self.access.url_with(path, &[("max_results", &limit)]);
        let mut query = url.query_pairs_mut();
        let bounds = [
            ("since_id", &request.since_id),
            ("until_id", &request.max_id),
        ];
        for (name, id) in bounds.into_iter().filter(|_| !is_list) {
            if let Some(id) = id {
                query.append_pair(name, id.as_str());
            }
        }
        if let Some(token) = token {
            query.append_pair("pagination_token", &token.text);
        }
        query.extend_pairs(FIELDS);
        drop(query);
        url
    }

    fn token(&self, list: &UpstreamId, bounds: &Bounds) -> Option<Token> {
        let below = bounds.below.as_ref()?;
        let (after, text) = self.depths.lock().nearest(list, below)?;
        Some(Token {
            is_exact: after == *below,
            text,
            after,
        })
    }
}

/// What goes on below a page.
struct Token {
    text: String,
    /// The oldest ID of the page before.
    after: Key,
    /// Whether that is the very bound that was asked for.
    is_exact: bool,
}

/// The bounds of a request, both exclusive.
struct Bounds {
    since: Option<Key>,
    below: Option<Key>,
}

/// How far down a page of a list reaches.
#[derive(Default)]
struct Reach {
    oldest: Option<Key>,
    is_at_since: bool,
}

impl Bounds {
    /// Cuts off what of a list's page lies outside the bounds.
    fn cut(&self, items: &mut Items) -> Reach {
        let mut reach = Reach::default();
        retain(items, |id| {
            let Ok(key) = IdOrder::Numeric.key(id) else {
                return false;
            };
            let is_above = self.since.as_ref().is_none_or(|since| key > *since);
            let is_below = self.below.as_ref().is_none_or(|below| key < *below);
            reach.is_at_since |= !is_above;
            if reach.oldest.as_ref().is_none_or(|oldest| key < *oldest) {
                reach.oldest = Some(key);
            }
            is_above && is_below
        });
        reach
    }
}

/// Keeps the items at these positions, and those without one.
fn retain(items: &mut Items, mut is_kept: impl FnMut(&UpstreamId) -> bool) {
    items.listed.retain(|listed| is_kept(&listed.position));
    items.passed.retain(&mut is_kept);
    let unreadable = &mut items.unreadable;
    unreadable.retain(|item| item.position.as_ref().is_none_or(&mut is_kept));
}

/// Keeps the first posts, and nothing below them.
fn truncate(items: &mut Items, limit: usize) {
    if items.listed.len() <= limit {
        return;
    }
    items.listed.truncate(limit);
    let last = items.listed.last();
    let last = last.and_then(|last| IdOrder::Numeric.key(&last.position).ok());
    retain(items, |id| IdOrder::Numeric.key(id).ok() >= last);
}

/// Whether X takes a request for wrong, as it does one with a token that it
/// no longer knows.
fn is_refused(answer: &Answer) -> bool {
    failure::of_status("", answer.status, b"").kind == FailureKind::Refused
}

const ME: &str = "/2/users/me";
pub(crate) const PAGE_LIMIT: u16 = 100;
/// The least that `max_results` may be for a user's posts and mentions.
const MIN_OF_USERS: u16 = 5;
/// The most requests for one page: a list of 3,200 posts is walked through.
const MAX_STEPS: usize = 32;

/// What is asked for of each tweet. Without it X sends its ID and text alone.
const FIELDS: [(&str, &str); 4] = [
    (
        "tweet.fields",
        "attachments,author_id,conversation_id,created_at,edit_controls,edit_history_tweet_ids,entities,in_reply_to_user_id,lang,note_tweet,possibly_sensitive,public_metrics,referenced_tweets,reply_settings,withheld",
    ),
    (
        "expansions",
        "author_id,attachments.media_keys,referenced_tweets.id,referenced_tweets.id.author_id,referenced_tweets.id.attachments.media_keys",
    ),
    (
        "user.fields",
        "created_at,description,name,profile_image_url,protected,public_metrics,url,username,verified",
    ),
    (
        "media.fields",
        "alt_text,duration_ms,height,media_key,preview_image_url,type,url,variants,width",
    ),
];
