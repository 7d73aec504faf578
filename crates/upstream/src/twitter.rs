//! The client of Twitter's API, version 1.1.

mod answer;
mod tweet_json;

use driftline_core::{
    answer::{Abilities, AnswerHeaders, Failure, FailureKind, LookUp, LookUps, Page, PageRequest},
    api::Api,
    upstream_id::UpstreamId,
};
use driftline_net::Http;
use http::StatusCode;
use url::Url;

use crate::{
    Address, ClientPurpose, Credential, Timeline, TokenError,
    access::{Access, Answer},
    headers,
    tweet::{self, is_id, listed},
};

/// Twitter's API, version 1.1, or a server that speaks it.
///
/// Its `max_id` is inclusive; the client asks for the number before.
#[derive(Debug, Clone)]
pub struct Twitter {
    access: Access,
}

impl Twitter {
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
        let access = Access::new(Api::Twitter, http, address, credential)?;
        Ok(Self { access })
    }

    /// The server's address.
    pub fn address(&self) -> &Address {
        self.access.address()
    }

    /// What a timeline can do.
    pub const fn abilities(&self, _: &Timeline) -> Abilities {
        Self::ABILITIES
    }

    /// The rate limit that a request counts against: Twitter has one for each
    /// kind of request.
    pub const fn scope(purpose: ClientPurpose<'_>) -> &'static str {
        match purpose {
            ClientPurpose::LookUp => "statuses/lookup",
            ClientPurpose::Page(Timeline::Home) => "statuses/home_timeline",
            ClientPurpose::Page(Timeline::Mentions) => "statuses/mentions_timeline",
            ClientPurpose::Page(Timeline::List(_)) => "lists/statuses",
            // The others are not Twitter's; no request is made for them.
            ClientPurpose::Page(_) => "statuses/user_timeline",
        }
    }

    /// Reads one page of a timeline.
    ///
    /// # Errors
    /// A [`Failure`] for anything but a complete list of posts with usable IDs.
    pub async fn page(&self, timeline: &Timeline, request: &PageRequest) -> Result<Page, Failure> {
        let Some(url) = self.page_url(timeline, request)? else {
            return Ok(Page {
                headers: headers::nothing_asked().headers,
                ..Page::default()
            });
        };
        let answer = self.fetch_ok(url).await?;
        let posts = answer::page(&answer.body)
            .map_err(|failure| self.access.body_failure(&answer, failure))?;
        Ok(Page {
            listed: listed(posts),
            passed: Vec::new(),
            headers: answer.metadata,
        })
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
    /// A [`Failure`] for more than [`Twitter::LOOK_UP_LIMIT`] IDs, for IDs
    /// that Twitter cannot have made, and for an invalid answer.
    pub async fn look_up_many(&self, ids: &[UpstreamId]) -> Result<LookUps, Failure> {
        let ids = self.access.distinct(ids, Self::LOOK_UP_LIMIT)?;
        if let Some(id) = ids.iter().find(|id| !is_id(id)) {
            return Err(self.access.no_number(id));
        }
        if ids.is_empty() {
            return Ok(headers::nothing_asked());
        }
        let answer = self.access.fetch(self.look_up_url(&ids)).await?;
        let findings = match answer.status {
            StatusCode::OK => answer::findings(&answer.body, ids)
                .map_err(|failure| self.access.body_failure(&answer, failure))?,
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => {
                answer::refused_findings(&answer.body, &ids)
                    .ok_or_else(|| self.look_up_failure(&answer))?
            }
            _ => return Err(self.look_up_failure(&answer)),
        };
        Ok(LookUps {
            findings,
            headers: answer.metadata,
        })
    }

    /// Whose credential it is, in words: a user's, an application's, or none.
    ///
    /// # Errors
    /// A [`Failure`] if the server refuses the credential or does not answer.
    pub async fn verify(&self) -> Result<String, Failure> {
        if !self.access.credential().is_none() {
            let url = self.access.url("/1.1/account/verify_credentials.json");
            let answer = self.access.fetch(url).await?;
            match answer.status {
                StatusCode::OK => {
                    let (id, name) = answer::me(&answer.body)
                        .map_err(|failure| self.access.body_failure(&answer, failure))?;
                    return Ok(format!(
                        "the user @{} ({})",
                        self.access.shown(&answer, &name),
                        self.access.shown(&answer, id.as_str())
                    ));
                }
                // Twitter's word for a token that is no user's.
                StatusCode::FORBIDDEN if self.access.credential().is_bearer() => {}
                _ => return Err(self.status_failure(&answer)),
            }
        }
        // The first tweet of all: whatever is said of it, the answer counts.
        self.look_up_many(&["20".into()]).await?;
        Ok(if self.access.credential().is_none() {
            "no credential; the server answers".to_owned()
        } else {
            "an application, not a user: home and mentions cannot be read with it".to_owned()
        })
    }

    async fn fetch_ok(&self, url: Url) -> Result<Answer, Failure> {
        let answer = self.access.fetch(url).await?;
        if answer.status != StatusCode::OK {
            return Err(self.status_failure(&answer));
        }
        Ok(answer)
    }

    /// The failure that a status means, or the code next to it, which distinguishes a
    /// throttle among other refusals.
    fn status_failure(&self, answer: &Answer) -> Failure {
        let failure = self.access.status_failure(answer);
        Failure {
            kind: answer::kind(&answer.body).unwrap_or(failure.kind),
            ..failure
        }
    }

    /// The same for a look-up: a 403 is about the credential only where its code says so.
    fn look_up_failure(&self, answer: &Answer) -> Failure {
        let failure = self.access.look_up_failure(answer);
        let kind = match answer::kind(&answer.body) {
            Some(FailureKind::Unauthorized) if answer::is_about_posts(&answer.body) => {
                FailureKind::Forbidden
            }
            kind => kind.unwrap_or(failure.kind),
        };
        Failure { kind, ..failure }
    }

    /// The address of a page; `None` for one below the least ID.
    fn page_url(&self, timeline: &Timeline, request: &PageRequest) -> Result<Option<Url>, Failure> {
        let failure = |kind, why: &str| Failure::new(kind, format!("{}: {why}", self.address()));
        if request.min_id.is_some() {
            return Err(failure(
                FailureKind::Refused,
                "Twitter has no min_id; ask for pages by since or below",
            ));
        }
        let (path, of) = match timeline {
            Timeline::Home => ("/1.1/statuses/home_timeline.json", None),
            Timeline::Mentions => ("/1.1/statuses/mentions_timeline.json", None),
            Timeline::List(id) => ("/1.1/lists/statuses.json", Some(("list_id", id))),
            Timeline::Account(id) => ("/1.1/statuses/user_timeline.json", Some(("user_id", id))),
            Timeline::Public | Timeline::Local | Timeline::Remote | Timeline::Tag(_) => {
                return Err(failure(
                    FailureKind::NotFound,
                    &format!(
                        "Twitter has no timeline {timeline}; it has home, mentions, list:ID and account:ID"
                    ),
                ));
            }
        };
        let count = request.limit.clamp(1, PAGE_LIMIT).to_string();
        let mut url = self.access.url_with(path, &[("count", &count)]);
        let mut query = url.query_pairs_mut();
        let since = request.since_id.as_ref().map(|id| ("since_id", id));
        for (name, id) in [of, since].into_iter().flatten() {
            if !is_id(id) {
                return Err(self.access.no_number(id));
            }
            query.append_pair(name, id.as_str());
        }
        if let Some(below) = &request.max_id {
            let number = below.as_str().parse::<u64>();
            let number = number
                .ok()
                .filter(|_| is_id(below))
                .ok_or_else(|| self.access.no_number(below))?;
            match number.checked_sub(1) {
                Some(newest @ 1..) => query.append_pair("max_id", &newest.to_string()),
                _ => return Ok(None),
            };
        }
        query.extend_pairs(FORM);
        drop(query);
        Ok(Some(url))
    }

    fn look_up_url(&self, ids: &[UpstreamId]) -> Url {
        let ids: Vec<_> = ids.iter().map(UpstreamId::as_str).collect();
        let parameters = [("id", &*ids.join(",")), ("map", "true")];
        let mut url = self
            .access
            .url_with("/1.1/statuses/lookup.json", &parameters);
        url.query_pairs_mut().extend_pairs(FORM);
        url
    }
}

const PAGE_LIMIT: u16 = 200;
/// Whole texts with what stands in them, retweets, and what is said of
/// pictures.
const FORM: [(&str, &str); 4] = [
    ("tweet_mode", "extended"),
    ("include_rts", "true"),
    ("include_entities", "true"),
    ("include_ext_alt_text", "true"),
];
