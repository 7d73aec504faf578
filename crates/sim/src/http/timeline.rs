//! The timelines of a simulated server.

use std::fmt;

use crate::{config::Lane, quota::Endpoint, rng::hash_text};

/// One of a server's timelines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Timeline {
    /// `home`.
    Home,
    /// `public`.
    Public,
    /// `tag/NAME`.
    Tag(String),
    /// `list/NUMBER`.
    List(u16),
    /// `account/NUMBER`: what one account wrote.
    Account(u64),
    /// `mentions`: posts that name the reader, on X and Twitter.
    Mentions,
}

impl Timeline {
    /// The timeline of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name.split_once('/') {
            None if name == "home" => Some(Self::Home),
            None if name == "public" => Some(Self::Public),
            None if name == "mentions" => Some(Self::Mentions),
            Some(("tag", tag)) if !tag.is_empty() => Some(Self::Tag(tag.to_owned())),
            Some(("list", number)) => number.parse().ok().map(Self::List),
            Some(("account", number)) => number.parse().ok().map(Self::Account),
            _ => None,
        }
    }

    /// Whether it shows public posts only.
    pub(crate) fn public_only(&self) -> bool {
        matches!(self, Self::Public | Self::Tag(_))
    }

    /// What a request for it is counted as.
    pub(crate) fn endpoint(&self) -> Endpoint {
        match self {
            Self::Home => Endpoint::Home,
            Self::Public | Self::Tag(_) => Endpoint::Public,
            Self::List(_) => Endpoint::List,
            Self::Account(_) => Endpoint::User,
            Self::Mentions => Endpoint::Mentions,
        }
    }

    /// The timelines of a server share no ID, as long as it has at most 900
    /// lists, or 899 in addition to mentions; of tags and accounts, one in 122 pairs shares a lane, where
    /// equal IDs are unlikely but possible.
    pub(crate) fn lane(&self) -> Lane {
        let number = match self {
            Self::Home => 0,
            Self::Public => 1,
            Self::List(number) => 1 + (*number).clamp(1, MAX_LISTS),
            Self::Mentions => 1 + MAX_LISTS,
            Self::Tag(_) | Self::Account(_) => {
                2 + MAX_LISTS + (hash_text(&self.to_string()) % SHARED_LANES) as u16
            }
        };
        Lane { number, of: LANES }
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Home => f.write_str("home"),
            Self::Public => f.write_str("public"),
            Self::Tag(tag) => write!(f, "tag/{tag}"),
            Self::List(number) => write!(f, "list/{number}"),
            Self::Mentions => f.write_str("mentions"),
            Self::Account(number) => write!(f, "account/{number}"),
        }
    }
}

/// The most lists that a server has.
pub(crate) const MAX_LISTS: u16 = 900;
const SHARED_LANES: u64 = 122;
const LANES: u16 = 1024;
