//! Fields and expansions: X shows little unless it is asked for.

use crate::http::{refusal::Refusal, request::Params};

/// What a request asks to be shown.
pub(super) struct Fields {
    tweet: Vec<String>,
    user: Vec<String>,
    expansions: Vec<String>,
}

impl Fields {
    pub(super) fn of(params: &Params) -> Result<Self, Refusal> {
        Ok(Self {
            tweet: known(params, "tweet.fields", TWEET)?,
            user: known(params, "user.fields", USER)?,
            expansions: known(params, "expansions", EXPANSIONS)?,
        })
    }

    /// Whether a field of a post is shown; expanding something shows its ID.
    pub(super) fn tweet(&self, name: &str) -> bool {
        let expanded = match name {
            "author_id" => self.expands("author_id"),
            "referenced_tweets" => self.expands_referenced(),
            _ => false,
        };
        expanded || self.tweet.iter().any(|field| field == name)
    }

    pub(super) fn user(&self, name: &str) -> bool {
        self.user.iter().any(|field| field == name)
    }

    pub(super) fn expands(&self, name: &str) -> bool {
        self.expansions.iter().any(|expansion| expansion == name)
    }

    pub(super) fn expands_referenced(&self) -> bool {
        self.expands("referenced_tweets.id") || self.expands(AUTHORS_OF_REFERENCED)
    }
}

/// Refuses what is no post's ID, which X takes for a number of at most 19 digits.
pub(super) fn check_id(name: &str, id: &str) -> Result<(), Refusal> {
    if (1..=19).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(());
    }
    let message = format!("The `{name}` query parameter value [{id}] is not valid");
    Err(Refusal::bad(name, id, message))
}

fn known(params: &Params, name: &str, all: &str) -> Result<Vec<String>, Refusal> {
    let asked = params.list(name);
    match asked
        .iter()
        .find(|field| !all.split(',').any(|it| it == **field))
    {
        None => Ok(asked.into_iter().map(str::to_owned).collect()),
        Some(field) => Err(Refusal::bad(
            name,
            field,
            format!("The `{name}` query parameter value [{field}] is not one of [{all}]"),
        )),
    }
}

pub(super) const AUTHORS_OF_REFERENCED: &str = "referenced_tweets.id.author_id";

/// The parameters that choose fields.
pub(super) const PARAMETERS: [&str; 6] = [
    "tweet.fields",
    "user.fields",
    "expansions",
    "media.fields",
    "poll.fields",
    "place.fields",
];

const TWEET: &str = "article,attachments,author_id,card_uri,community_id,context_annotations,\
    conversation_id,created_at,display_text_range,edit_controls,edit_history_tweet_ids,\
    entities,geo,id,in_reply_to_user_id,lang,media_metadata,non_public_metrics,\
    note_tweet,organic_metrics,possibly_sensitive,promoted_metrics,public_metrics,\
    referenced_tweets,reply_settings,scopes,source,suggested_source_links,text,withheld";

const USER: &str = "affiliation,confirmed_email,connection_status,created_at,description,entities,id,\
    is_identity_verified,location,most_recent_tweet_id,name,parody,pinned_tweet_id,\
    profile_banner_url,profile_image_url,protected,public_metrics,receives_your_dm,\
    subscription,subscription_type,url,username,verified,verified_followers_count,\
    verified_type,withheld";

const EXPANSIONS: &str = "article.cover_media,article.media_entities,attachments.media_keys,\
    referenced_tweets.id.attachments.media_keys,attachments.media_source_tweet,\
    attachments.poll_ids,author_id,edit_history_tweet_ids,entities.mentions.username,\
    geo.place_id,in_reply_to_user_id,entities.note.mentions.username,pinned_tweet_id,\
    referenced_tweets.id,referenced_tweets.id.author_id";
