//! One client for every API.

use driftline_core::{
    answer::{Abilities, AnswerHeaders, Failure, FailureKind, LookUp, LookUps, Page, PageRequest},
    api::Api,
    timeline::Streaming,
    upstream_id::UpstreamId,
};
use driftline_net::Http;

use crate::{
    Address, Credential, Mastodon, Stream, StreamEndpoint, Timeline, TokenError, Twitter, X,
    segment, tweet,
};

/// An upstream, whichever API it speaks.
#[derive(Debug, Clone)]
pub enum Upstream {
    /// Mastodon's.
    Mastodon(Mastodon),
    /// X's version 2.
    X(X),
    /// Twitter's version 1.1.
    Twitter(Twitter),
}

/// The scope of an API's look-ups, and the most posts of one, without a client: see
/// [`Upstream::scope`] and [`Upstream::look_up_limit`].
pub const fn look_ups(api: Api, has_batch: bool) -> (&'static str, usize) {
    match api {
        Api::Mastodon if has_batch => (MASTODON_SCOPE, Mastodon::LOOK_UP_LIMIT),
        Api::Mastodon => (MASTODON_SCOPE, 1),
        Api::X => (scope(api, ClientPurpose::LookUp), X::LOOK_UP_LIMIT),
        Api::Twitter => (scope(api, ClientPurpose::LookUp), Twitter::LOOK_UP_LIMIT),
    }
}

/// The name of the rate limit that a request counts against: see [`Upstream::scope`].
pub const fn scope(api: Api, purpose: ClientPurpose<'_>) -> &'static str {
    match api {
        Api::Mastodon => MASTODON_SCOPE,
        Api::X => X::scope(purpose),
        Api::Twitter => Twitter::scope(purpose),
    }
}

/// What the timelines of an API can do.
pub const fn abilities(api: Api) -> Abilities {
    match api {
        Api::Mastodon => Mastodon::ABILITIES,
        Api::X => X::ABILITIES,
        Api::Twitter => Twitter::ABILITIES,
    }
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

/// Mastodon's headers report the tightest of its limits.
const MASTODON_SCOPE: &str = "requests";
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
        Ok(match api {
            Api::Mastodon => Self::Mastodon(Mastodon::with_credential(http, address, credential)?),
            Api::X => Self::X(X::new(http, address, credential)?),
            Api::Twitter => Self::Twitter(Twitter::new(http, address, credential)?),
        })
    }

    /// The API that it speaks.
    pub const fn api(&self) -> Api {
        match self {
            Self::Mastodon(_) => Api::Mastodon,
            Self::X(_) => Api::X,
            Self::Twitter(_) => Api::Twitter,
        }
    }

    /// The server's address.
    pub fn address(&self) -> &Address {
        match self {
            Self::Mastodon(client) => client.address(),
            Self::X(client) => client.address(),
            Self::Twitter(client) => client.address(),
        }
    }

    /// What a timeline can do.
    pub const fn abilities(&self, timeline: &Timeline) -> Abilities {
        match self {
            Self::Mastodon(client) => client.abilities(timeline),
            Self::X(client) => client.abilities(timeline),
            Self::Twitter(client) => client.abilities(timeline),
        }
    }

    /// Reads one page of a timeline.
    ///
    /// # Errors
    /// A [`Failure`] for anything but a complete list of posts with usable IDs.
    pub async fn page(&self, timeline: &Timeline, request: &PageRequest) -> Result<Page, Failure> {
        match self {
            Self::Mastodon(client) => client.page(timeline, request).await,
            Self::X(client) => client.page(timeline, request).await,
            Self::Twitter(client) => client.page(timeline, request).await,
        }
    }

    /// Looks one post up.
    ///
    /// # Errors
    /// A [`Failure`] for anything but the post asked for or the word that it
    /// is gone.
    pub async fn look_up(&self, id: &UpstreamId) -> Result<(LookUp, AnswerHeaders), Failure> {
        let found = match self {
            Self::Mastodon(client) => client.look_up(id).await,
            Self::X(client) => client.look_up(id).await,
            Self::Twitter(client) => client.look_up(id).await,
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

    /// Looks several posts up, at most [`Upstream::look_up_limit`]. An ID that
    /// is given twice is asked for once.
    ///
    /// # Errors
    /// A [`Failure`] for more IDs, and for anything but a complete answer.
    pub async fn look_up_many(&self, ids: &[UpstreamId]) -> Result<LookUps, Failure> {
        match self {
            Self::Mastodon(client) => client.look_up_many(ids).await,
            Self::X(client) => client.look_up_many(ids).await,
            Self::Twitter(client) => client.look_up_many(ids).await,
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
        match self {
            Self::Mastodon(client) => client.has_batch_look_up(id).await,
            Self::X(_) | Self::Twitter(_) => Ok(Some(true)),
        }
    }

    /// The name of the rate limit that a request counts against. The limits
    /// that an answer's headers report are those of its scope.
    pub const fn scope(&self, purpose: ClientPurpose<'_>) -> &'static str {
        scope(self.api(), purpose)
    }

    /// Whether the API streams a timeline; the server need not.
    pub fn streams(&self, timeline: &Timeline) -> bool {
        match self {
            Self::Mastodon(client) => client.streams(timeline),
            Self::X(_) | Self::Twitter(_) => false,
        }
    }

    /// Asks the server where its streams are; `None` if the API has none.
    ///
    /// # Errors
    /// A [`Failure`] if the server does not answer.
    pub async fn stream_endpoint(&self) -> Result<Option<StreamEndpoint>, Failure> {
        match self {
            Self::Mastodon(client) => client.stream_endpoint().await.map(Some),
            Self::X(_) | Self::Twitter(_) => Ok(None),
        }
    }

    /// Opens the stream of a timeline; `None` if it has none or `way` allows
    /// none.
    ///
    /// # Errors
    /// A [`Failure`] of whatever keeps it from opening.
    pub async fn stream(
        &self,
        timeline: &Timeline,
        way: Streaming,
        endpoint: &StreamEndpoint,
    ) -> Result<Option<Stream>, Failure> {
        match self {
            Self::Mastodon(client) => client.stream(timeline, way, endpoint).await,
            Self::X(_) | Self::Twitter(_) => Ok(None),
        }
    }

    /// Whose credential it is, in words, for people.
    ///
    /// # Errors
    /// A [`Failure`] if the server refuses the credential or does not answer.
    pub async fn verify(&self) -> Result<String, Failure> {
        match self {
            Self::Mastodon(client) => client.verify().await,
            Self::X(client) => client.verify().await,
            Self::Twitter(client) => client.verify().await,
        }
    }
}
