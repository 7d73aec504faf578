//! One client for every API.

use driftline_core::{
    answer::{
        Abilities, AnswerHeaders, Failure, FailureKind, LookUp, LookUps, Page, PageRequest, Thread,
    },
    api::Api,
    edit_history::EarlierVersion,
    post::{Author, Post},
    timeline::Streaming,
    upstream_id::UpstreamId,
};
use driftline_net::Http;

use crate::{
    AccountHandle, Address, Credential, InstanceInquiry, Stream, StreamEndpoint, Timeline,
    TokenError,
    access::Access,
    headers, instance_inquiry, mastodon, parse, segment, stream, tweet, twitter,
    x::{self, X},
};

/// A client of an upstream, whichever API it speaks.
#[derive(Debug, Clone)]
pub struct Upstream(Client);

#[derive(Debug, Clone)]
enum Client {
    Mastodon(Access),
    X(X),
    Twitter(Access),
}

/// The scope of an API's look-ups, and the most posts of one, without a client: see
/// [`Upstream::scope`] and [`Upstream::look_up_limit`].
pub const fn look_ups(api: Api, has_batch: bool) -> (&'static str, usize) {
    let limit = match api {
        Api::Mastodon if has_batch => mastodon::LOOK_UP_LIMIT,
        Api::Mastodon => 1,
        Api::X | Api::Twitter => tweet::LOOK_UP_LIMIT,
    };
    (scope(api, ClientPurpose::LookUp), limit)
}

/// What the timelines of an API can do.
pub const fn abilities(api: Api) -> Abilities {
    let (page_limit, min_id) = match api {
        Api::Mastodon => (mastodon::PAGE_LIMIT, true),
        Api::X => (x::PAGE_LIMIT, false),
        Api::Twitter => (twitter::PAGE_LIMIT, false),
    };
    Abilities { page_limit, min_id }
}

/// Whether posts of an API can have this ID. X and Twitter count theirs, in at most 19 digits, and
/// take a request with another one for wrong as a whole; Mastodon's servers make what they like,
/// but nothing that would end it in an address.
pub fn is_post_id(api: Api, id: &str) -> bool {
    match api {
        Api::X | Api::Twitter => tweet::is_id(&id.into()),
        Api::Mastodon => {
            (1..=MAX_ID).contains(&id.len())
                && segment::is_usable(id)
                && id
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_.:~".contains(&b))
        }
    }
}

/// No server makes longer IDs.
const MAX_ID: usize = 128;

/// The purpose of a request, as far as rate limits distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientPurpose<'t> {
    /// A page of a timeline.
    Page(&'t Timeline),
    /// A look-up of one post or several.
    LookUp,
}

/// Mastodon's headers report the tightest of its limits. X and Twitter have one for each kind of
/// request; of timelines that they do not have, no request is made.
pub const fn scope(api: Api, purpose: ClientPurpose<'_>) -> &'static str {
    use ClientPurpose::{LookUp, Page};
    match (api, purpose) {
        (Api::Mastodon, _) => "requests",
        (Api::X, LookUp) => "tweets",
        (Api::X, Page(Timeline::Home)) => "users/timelines/reverse_chronological",
        (Api::X, Page(Timeline::Mentions)) => "users/mentions",
        (Api::X, Page(Timeline::List(_))) => "lists/tweets",
        (Api::X, Page(_)) => "users/tweets",
        (Api::Twitter, LookUp) => "statuses/lookup",
        (Api::Twitter, Page(Timeline::Home)) => "statuses/home_timeline",
        (Api::Twitter, Page(Timeline::Mentions)) => "statuses/mentions_timeline",
        (Api::Twitter, Page(Timeline::List(_))) => "lists/statuses",
        (Api::Twitter, Page(_)) => "statuses/user_timeline",
    }
}

impl Upstream {
    /// A client of the server at `address`; it shares `http`'s connections.
    ///
    /// # Errors
    /// [`TokenError`] if the credential cannot be sent, would travel
    /// unencrypted while `http` allows no private networks, or is not one that
    /// the API knows.
    pub fn new(
        api: Api,
        http: Http,
        address: Address,
        credential: Credential,
    ) -> Result<Self, TokenError> {
        let access = Access::new(api, http, address, credential)?;
        Ok(Self(match api {
            Api::Mastodon => Client::Mastodon(access),
            Api::X => Client::X(X::new(access)),
            Api::Twitter => Client::Twitter(access),
        }))
    }

    /// The API that it speaks.
    pub const fn api(&self) -> Api {
        self.access().api()
    }

    /// What its timelines can do.
    pub const fn abilities(&self) -> Abilities {
        abilities(self.api())
    }

    /// The thread of a post; `None` if the server does not show the post, or its API has no threads.
    ///
    /// # Errors
    /// A [`Failure`] for anything but a thread.
    pub async fn thread(&self, id: &UpstreamId) -> Result<Option<Thread>, Failure> {
        match &self.0 {
            Client::Mastodon(access) => mastodon::thread(access, id).await,
            Client::X(_) | Client::Twitter(_) => Ok(None),
        }
    }

    /// The earlier versions of a post, the oldest first; none if the server does not show the post, or its API has no
    /// histories.
    ///
    /// # Errors
    /// A [`Failure`] for anything but a list of versions.
    pub async fn history(
        &self,
        id: &UpstreamId,
    ) -> Result<(Vec<EarlierVersion>, AnswerHeaders), Failure> {
        match &self.0 {
            Client::Mastodon(access) => mastodon::history(access, id).await,
            Client::X(_) | Client::Twitter(_) => Ok(Default::default()),
        }
    }

    /// The posts that the server finds by an address, which it may ask the address's own server for; none of an API
    /// without such a search.
    ///
    /// # Errors
    /// A [`Failure`] for anything but a list of what was found.
    pub async fn search(&self, address: &str) -> Result<(Vec<Post>, AnswerHeaders), Failure> {
        match &self.0 {
            Client::Mastodon(access) => mastodon::search(access, address).await,
            Client::X(_) | Client::Twitter(_) => Ok(Default::default()),
        }
    }

    /// The accounts that the server finds by a name with its host, which it may ask that host for; none of an API
    /// without such a search.
    ///
    /// # Errors
    /// A [`Failure`] for anything but a list of what was found.
    pub async fn search_accounts(
        &self,
        handle: &AccountHandle,
    ) -> Result<(Vec<Author>, AnswerHeaders), Failure> {
        match &self.0 {
            Client::Mastodon(access) => mastodon::search_accounts(access, handle).await,
            Client::X(_) | Client::Twitter(_) => Ok(Default::default()),
        }
    }

    /// The server's own account of a name without a host; `None` if it shows none, or the API has no look-up of
    /// names here.
    ///
    /// # Errors
    /// A [`Failure`] for anything but an account or the word that there is none.
    pub async fn look_up_account(
        &self,
        name: &str,
    ) -> Result<(Option<Author>, AnswerHeaders), Failure> {
        match &self.0 {
            Client::Mastodon(access) => mastodon::look_up_account(access, name).await,
            Client::X(_) | Client::Twitter(_) => Ok(Default::default()),
        }
    }

    /// Asks the next question of an inquiry into what the server is: one request. Servers of X and Twitter say
    /// nothing of themselves.
    ///
    /// # Errors
    /// A [`Failure`] of whatever teaches nothing: throttles, servers that fail, connections that break.
    pub async fn inquire(&self, inquiry: &mut InstanceInquiry) -> Result<AnswerHeaders, Failure> {
        match &self.0 {
            Client::Mastodon(access) => instance_inquiry::inquire(access, inquiry).await,
            Client::X(_) | Client::Twitter(_) => {
                inquiry.end();
                Ok(AnswerHeaders::default())
            }
        }
    }

    /// Reads one page of a timeline.
    ///
    /// # Errors
    /// A [`Failure`] for anything but a complete list of posts with usable IDs.
    pub async fn page(&self, timeline: &Timeline, request: &PageRequest) -> Result<Page, Failure> {
        match &self.0 {
            Client::Mastodon(access) => mastodon::page(access, timeline, request).await,
            Client::X(client) => client.page(timeline, request).await,
            Client::Twitter(access) => twitter::page(access, timeline, request).await,
        }
    }

    /// Looks one post up. A post that X or Twitter leaves out of the answer, or that is not for this
    /// reader, is hidden; a server that speaks Mastodon's API answers 404 for it.
    ///
    /// # Errors
    /// A [`Failure`] for anything but the post asked for or the word that it
    /// is gone.
    pub async fn look_up(&self, id: &UpstreamId) -> Result<(LookUp, AnswerHeaders), Failure> {
        let found = match &self.0 {
            Client::Mastodon(access) => mastodon::look_up(access, id).await,
            Client::X(_) | Client::Twitter(_) => {
                let found = self.look_up_many(std::slice::from_ref(id)).await;
                found.map(tweet::of_one)
            }
        };
        // A caller distinguishes the refusal of a timeline from that of one post by its request.
        found.map_err(|failure| match failure.kind {
            FailureKind::Forbidden => Failure {
                kind: FailureKind::Unauthorized,
                ..failure
            },
            _ => failure,
        })
    }

    /// Reads an item of a page of a timeline as it came: its position, and its post if it is one.
    ///
    /// # Errors
    /// Why it cannot be read, without secrets.
    pub fn read_item(
        &self,
        timeline: &Timeline,
        item: &[u8],
    ) -> Result<(UpstreamId, Option<Post>), String> {
        let read = match &self.0 {
            Client::Mastodon(_) => parse::read_item(item, timeline),
            Client::X(_) => x::read_item(item),
            Client::Twitter(_) => twitter::read_item(item),
        };
        read.map_err(|error| self.access().reason(&error))
    }

    /// Looks several posts up, at most [`Upstream::look_up_limit`]. An ID that
    /// is given twice is asked for once.
    ///
    /// # Errors
    /// A [`Failure`] for more IDs, for IDs that the API cannot have made, and for anything but a
    /// complete answer.
    pub async fn look_up_many(&self, ids: &[UpstreamId]) -> Result<LookUps, Failure> {
        let access = self.access();
        let ids = access.distinct(ids, self.look_up_limit(true))?;
        if ids.is_empty() {
            return Ok(headers::nothing_asked());
        }
        if self.api() != Api::Mastodon {
            ids.iter().try_for_each(|id| access.check_number(id))?;
        }
        match &self.0 {
            Client::Mastodon(access) => mastodon::look_up_many(access, ids).await,
            Client::X(client) => client.look_up_many(ids).await,
            Client::Twitter(access) => twitter::look_up_many(access, ids).await,
        }
    }

    /// The most posts of one look-up. `has_batch` is what
    /// [`Upstream::has_batch_look_up`] found, `false` before it was asked.
    pub const fn look_up_limit(&self, has_batch: bool) -> usize {
        look_ups(self.api(), has_batch).1
    }

    /// Whether several posts can be looked up at once: asks a Mastodon server
    /// for a post's ID; `None` if it shows nothing of that one. The other APIs
    /// always can, and are not asked.
    ///
    /// # Errors
    /// A [`Failure`] of whatever teaches nothing.
    pub async fn has_batch_look_up(&self, id: &UpstreamId) -> Result<Option<bool>, Failure> {
        match &self.0 {
            Client::Mastodon(access) => mastodon::has_batch_look_up(access, id).await,
            _ => Ok(Some(true)),
        }
    }

    /// The name of the rate limit that a request counts against. The limits
    /// that an answer's headers report are those of its scope.
    pub const fn scope(&self, purpose: ClientPurpose<'_>) -> &'static str {
        scope(self.api(), purpose)
    }

    /// Whether the API streams a timeline; the server need not.
    pub fn streams(&self, timeline: &Timeline) -> bool {
        self.api() == Api::Mastodon && stream::is_streamed(timeline)
    }

    /// Asks the server where its streams are; `None` if the API has none.
    ///
    /// # Errors
    /// A [`Failure`] if the server does not answer; one that names no other server streams by
    /// itself.
    pub async fn stream_endpoint(&self) -> Result<Option<StreamEndpoint>, Failure> {
        match &self.0 {
            Client::Mastodon(access) => stream::endpoint(access).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Opens the stream of a timeline; `None` if it has none or `way` is `Off`.
    ///
    /// # Errors
    /// A [`Failure`] of whatever keeps it from opening.
    pub async fn stream(
        &self,
        timeline: &Timeline,
        way: Streaming,
        endpoint: &StreamEndpoint,
    ) -> Result<Option<Stream>, Failure> {
        match &self.0 {
            Client::Mastodon(access) => stream::open(access, timeline, way, endpoint).await,
            _ => Ok(None),
        }
    }

    /// The ID of the account of that name; `None` if the server knows none, or the API has no look-up
    /// of names here.
    ///
    /// # Errors
    /// A [`Failure`] if the server refuses the credential or does not answer.
    pub async fn account_id(&self, handle: &AccountHandle) -> Result<Option<UpstreamId>, Failure> {
        match &self.0 {
            Client::Mastodon(access) => mastodon::account_id(access, handle).await,
            Client::X(_) | Client::Twitter(_) => Ok(None),
        }
    }

    /// Whose credential it is, in words, for people.
    ///
    /// # Errors
    /// A [`Failure`] if the server refuses the credential or does not answer.
    pub async fn verify(&self) -> Result<String, Failure> {
        let user = match &self.0 {
            Client::Mastodon(access) => return mastodon::verify(access).await,
            Client::X(client) => client.verified_user().await?,
            Client::Twitter(access) => twitter::verified_user(access).await?,
        };
        Ok(user.unwrap_or_else(|| {
            if self.access().credential().is_none() {
                "no credential; the server answers".to_owned()
            } else {
                "an application, not a user: home and mentions cannot be read with it".to_owned()
            }
        }))
    }

    const fn access(&self) -> &Access {
        match &self.0 {
            Client::Mastodon(access) | Client::Twitter(access) => access,
            Client::X(client) => &client.access,
        }
    }
}
