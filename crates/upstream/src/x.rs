//! The client of X's API, version 2.

mod answer;
mod depth;
mod tweet_json;

use std::sync::{Arc, Mutex, PoisonError};

use driftline_core::{
    answer::{
        Abilities, AnswerHeaders, Failure, FailureKind, Listed, LookUp, LookUps, Page, PageRequest,
    },
    api::Api,
    post::Post,
    upstream_id::{IdOrder, Key, UpstreamId},
};
use driftline_net::Http;
use http::StatusCode;
use tokio::sync::OnceCell;
use url::Url;

use self::{answer::Me, depth::Depths};
use crate::{
    Address, ClientPurpose, Credential, Timeline, TokenError,
    access::{Access, Answer},
    failure, headers,
    tweet::{self, is_id, listed},
};

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
pub struct X {
    access: Access,
    me: Arc<OnceCell<Me>>,
    depths: Arc<Mutex<Depths>>,
}

impl X {
    /// The most posts of one look-up.
    pub const LOOK_UP_LIMIT: usize = 100;
    /// What timelines can do.
    pub const ABILITIES: Abilities = Abilities {
        page_limit: PAGE_LIMIT,
        min_id: false,
    };

    /// A client of the server at `address`; it shares `http`'s connections.
    ///
    /// # Errors
    /// [`TokenError`] if the credential cannot be sent, or would travel
    /// unencrypted while `http` allows no private networks.
    pub fn new(http: Http, address: Address, credential: Credential) -> Result<Self, TokenError> {
        Ok(Self {
            access: Access::new(Api::X, http, address, credential)?,
            me: Arc::default(),
            depths: Arc::default(),
        })
    }

    /// The server's address.
    pub fn address(&self) -> &Address {
        self.access.address()
    }

    /// What a timeline can do.
    pub const fn abilities(&self, _: &Timeline) -> Abilities {
        Self::ABILITIES
    }

    /// The rate limit that a request counts against: X has one for each kind
    /// of request. Home and mentions ask once for the user besides.
    pub const fn scope(purpose: ClientPurpose<'_>) -> &'static str {
        match purpose {
            ClientPurpose::LookUp => "tweets",
            ClientPurpose::Page(Timeline::Home) => "users/timelines/reverse_chronological",
            ClientPurpose::Page(Timeline::Mentions) => "users/mentions",
            ClientPurpose::Page(Timeline::List(_)) => "lists/tweets",
            // The others are not X's; no request is made for them.
            ClientPurpose::Page(_) => "users/tweets",
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
    pub async fn page(&self, timeline: &Timeline, request: &PageRequest) -> Result<Page, Failure> {
        if request.min_id.is_some() {
            return Err(self.refused("X has no min_id; ask for pages by since or below"));
        }
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
                self.depths().forget(list, &old.after);
                token = None;
                continue;
            }
            if answer.status != StatusCode::OK {
                return Err(self.access.status_failure(&answer));
            }
            let read = answer::page(&answer.body)
                .map_err(|failure| self.access.body_failure(&answer, failure))?;
            let (mut listed, reach) = match list {
                Some(_) => bounds.cut(read.posts),
                None => (listed(read.posts), Reach::default()),
            };
            if let (Some(list), Some(next), Some(oldest)) = (list, &read.next, &reach.oldest)
                && !reach.is_at_since
            {
                self.depths().remember(list, oldest, next);
            }
            let next = read
                .next
                .filter(|_| listed.is_empty() && !reach.is_at_since);
            let Some(next) = next else {
                listed.truncate(limit);
                let metadata = AnswerHeaders {
                    body_bytes,
                    ..answer.metadata
                };
                return Ok(Page {
                    listed,
                    passed: Vec::new(),
                    headers: metadata,
                });
            };
            token = Some(Token {
                text: next,
                after: reach.oldest.unwrap_or_else(Key::highest),
                is_exact: false,
            });
        }
        Err(Failure::new(
            FailureKind::TimedOut,
            format!(
                "{}: {MAX_STEPS} pages of {timeline} in a row hold nothing that was asked for; it is tried again later, and a list goes on from there",
                self.address()
            ),
        ))
    }

    /// Looks one post up. One that the answer leaves out, or that is not for
    /// this reader, counts as gone, as it does where a server answers 404.
    ///
    /// # Errors
    /// A [`Failure`] for anything but the post asked for or the word that it
    /// is gone.
    pub async fn look_up(&self, id: &UpstreamId) -> Result<(LookUp, AnswerHeaders), Failure> {
        let found = self.look_up_many(std::slice::from_ref(id)).await?;
        Ok(tweet::of_one(found))
    }

    /// Looks several posts up.
    ///
    /// # Errors
    /// A [`Failure`] for more than [`X::LOOK_UP_LIMIT`] IDs, for IDs that X
    /// cannot have made, and for an answer that says nothing of any of them.
    pub async fn look_up_many(&self, ids: &[UpstreamId]) -> Result<LookUps, Failure> {
        let ids = self.access.distinct(ids, Self::LOOK_UP_LIMIT)?;
        if let Some(id) = ids.iter().find(|id| !is_id(id)) {
            return Err(self.access.no_number(id));
        }
        if ids.is_empty() {
            return Ok(headers::nothing_asked());
        }
        let answer = self.access.fetch(self.look_up_url(&ids)).await?;
        if answer.status != StatusCode::OK {
            return Err(self.access.look_up_failure(&answer));
        }
        match answer::findings(&answer.body, ids) {
            Ok(findings) => Ok(LookUps {
                findings,
                headers: answer.metadata,
            }),
            Err(failure) => Err(self.access.body_failure(&answer, failure)),
        }
    }

    /// Whose credential it is, in words: a user's, an application's, or none.
    ///
    /// # Errors
    /// A [`Failure`] if the server refuses the credential or does not answer.
    pub async fn verify(&self) -> Result<String, Failure> {
        if !self.access.credential().is_none() {
            let answer = self.access.fetch(self.me_url()).await?;
            match answer.status {
                StatusCode::OK => {
                    let me = self.read_me(&answer)?;
                    let name = self.access.shown(&answer, &me.username);
                    return Ok(format!("the user @{name} ({})", me.id));
                }
                // X's word for a token that is no user's.
                StatusCode::FORBIDDEN if self.access.credential().is_bearer() => {}
                _ => return Err(self.access.status_failure(&answer)),
            }
        }
        // The first tweet of all: whatever is said of it, the answer counts.
        self.access
            .fetch_ok(self.access.url("/2/tweets?ids=20"))
            .await?;
        Ok(if self.access.credential().is_none() {
            "no credential; the server answers".to_owned()
        } else {
            "an application, not a user: home and mentions cannot be read with it".to_owned()
        })
    }

    fn bounds(&self, request: &PageRequest) -> Result<Bounds, Failure> {
        let key = |id: &Option<UpstreamId>| match id {
            Some(id) if !is_id(id) => Err(self.access.no_number(id)),
            Some(id) => Ok(IdOrder::Numeric.key(id).ok()),
            None => Ok(None),
        };
        Ok(Bounds {
            since: key(&request.since_id)?,
            below: key(&request.max_id)?,
        })
    }

    async fn path(&self, timeline: &Timeline) -> Result<String, Failure> {
        let of = |id: &UpstreamId, path: String| {
            if is_id(id) {
                Ok(path)
            } else {
                Err(self.access.no_number(id))
            }
        };
        match timeline {
            Timeline::Home => {
                let me = self.me().await?;
                Ok(format!("/2/users/{me}/timelines/reverse_chronological"))
            }
            Timeline::Mentions => Ok(format!("/2/users/{}/mentions", self.me().await?)),
            Timeline::Account(id) => of(id, format!("/2/users/{id}/tweets")),
            Timeline::List(id) => of(id, format!("/2/lists/{id}/tweets")),
            Timeline::Public | Timeline::Local | Timeline::Remote | Timeline::Tag(_) => {
                Err(Failure::new(
                    FailureKind::NotFound,
                    format!(
                        "{}: X has no timeline {timeline}; it has home, mentions, list:ID and account:ID",
                        self.address()
                    ),
                ))
            }
        }
    }

    /// The credential's own user. A failure is not kept.
    async fn me(&self) -> Result<&UpstreamId, Failure> {
        let me = self.me.get_or_try_init(|| async {
            let answer = self.access.fetch(self.me_url()).await?;
            if answer.status == StatusCode::OK {
                return self.read_me(&answer);
            }
            let mut failure = self.access.status_failure(&answer);
            if failure.kind == FailureKind::Unauthorized {
                failure
                    .message
                    .push_str("; home and mentions need a user's credential, not an application's");
            }
            Err(failure)
        });
        Ok(&me.await?.id)
    }

    fn read_me(&self, answer: &Answer) -> Result<Me, Failure> {
        answer::me(&answer.body).map_err(|failure| self.access.body_failure(answer, failure))
    }

    fn me_url(&self) -> Url {
        self.access.url("/2/users/me")
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
        let (after, text) = self.depths().nearest(list, below)?;
        Some(Token {
            is_exact: after == *below,
            text,
            after,
        })
    }

    fn depths(&self) -> std::sync::MutexGuard<'_, Depths> {
        // What is remembered is right however its writer ended.
        self.depths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self, why: &str) -> Failure {
        Failure::new(FailureKind::Refused, format!("{}: {why}", self.address()))
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
    /// What of a list's page lies within the bounds.
    fn cut(&self, posts: Vec<Post>) -> (Vec<Listed>, Reach) {
        let mut reach = Reach::default();
        let mut within = Vec::with_capacity(posts.len());
        for listed in listed(posts) {
            let Ok(key) = IdOrder::Numeric.key(&listed.position) else {
                continue;
            };
            let is_above = self.since.as_ref().is_none_or(|since| key > *since);
            let is_below = self.below.as_ref().is_none_or(|below| key < *below);
            reach.is_at_since |= !is_above;
            if is_above && is_below {
                within.push(listed);
            }
            if reach.oldest.as_ref().is_none_or(|oldest| key < *oldest) {
                reach.oldest = Some(key);
            }
        }
        (within, reach)
    }
}

/// Whether X takes a request for wrong, as it does one with a token that it
/// no longer knows.
fn is_refused(answer: &Answer) -> bool {
    failure::of_status("", answer.status, b"").kind == FailureKind::Refused
}

const PAGE_LIMIT: u16 = 100;
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
