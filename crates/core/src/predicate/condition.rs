use std::{fmt, ops::RangeInclusive, str::FromStr};

use jiff::{Timestamp, civil::Date};

use super::{
    names::{Acct, Host, Language, SourceName, Tag},
    parser::NameContext,
};
use crate::{post::Visibility, post_text::PostText};

/// A condition on a part of a post that the seed's propositions do not have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Condition {
    /// A copy of the post was seen through the server with this host.
    Via(Host),
    /// The post is in this source.
    Source(SourceName),
    /// The post has this attachment.
    Has(Attachment),
    /// The post has this trait.
    Is(PostTrait),
    /// The post states this language.
    Language(Language),
    /// The post has this hashtag.
    Tag(Tag),
    /// The post mentions this account.
    Mentions(Acct),
    /// The post has this visibility.
    Visibility(Visibility),
    /// The post was created after this date or time.
    After(When),
    /// The post was created before this date or time.
    Before(When),
    /// The post was created on this date, in UTC.
    During(Date),
    /// The ID of the post on this server compares so.
    Id(Comparison),
    /// A count of the post compares so. A count that the upstream does not report never does.
    Count {
        /// The count.
        kind: CountKind,
        /// The comparison.
        comparison: Comparison,
    },
}

named_enum! {
    /// A part that some posts have.
    pub enum Attachment: "lowercase" {
        /// An image, a video or another medium.
        Media,
        /// A poll.
        Poll,
        /// A link with a preview.
        Link,
        /// A preview of a video.
        Embed,
        /// A content warning.
        Cw,
    }
}

named_enum! {
    /// A property that a post has or lacks.
    pub enum PostTrait: "lowercase" {
        /// The post is a reply.
        Reply,
        /// The post is a boost of another one.
        Boost,
        /// The author has edited the post.
        Edited,
        /// The author marked the post as sensitive.
        Sensitive,
        /// The author is a bot.
        Bot,
        /// The viewer follows the author.
        Followed,
    }
}

named_enum! {
    /// A count of a post.
    pub enum CountKind: "lowercase" {
        /// The number of favourites.
        Favourites,
        /// The number of boosts.
        Boosts,
        /// The number of replies.
        Replies,
        /// The number of quotes.
        Quotes,
        /// The number of views.
        Views,
    }
}

/// A comparison with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// The relation of the compared value to the number.
    pub relation: Relation,
    /// The number.
    pub number: u64,
}

/// A relation between two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// `=`, which the text form may omit.
    Equal,
    /// `<`.
    Less,
    /// `<=`.
    AtMost,
    /// `>`.
    Greater,
    /// `>=`.
    AtLeast,
}

/// A date in UTC, or a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum When {
    /// All of a day in UTC.
    Date(Date),
    /// A point in time.
    Time(Timestamp),
}

/// The reason why a name and a value are not a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// There is no condition with this name.
    #[error("unknown name")]
    Name,
    /// The condition does not accept the value.
    #[error("invalid value")]
    Value,
    /// The value is `me`, but there is no viewer.
    #[error("`me` needs a viewer")]
    Viewer,
}

impl Condition {
    /// Returns the name in the text form and in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Via(_) => "via",
            Self::Source(_) => "source",
            Self::Has(_) => "has",
            Self::Is(_) => "is",
            Self::Language(_) => "lang",
            Self::Tag(_) => "tag",
            Self::Mentions(_) => "mentions",
            Self::Visibility(_) => "visibility",
            Self::After(_) => "after",
            Self::Before(_) => "before",
            Self::During(_) => "during",
            Self::Id(_) => "id",
            Self::Count { kind, .. } => kind.name(),
        }
    }

    /// Returns the value in the text form, before quoting, and in JSON.
    pub fn value(&self) -> String {
        match self {
            Self::Via(host) => host.as_str().to_owned(),
            Self::Source(name) => name.as_str().to_owned(),
            Self::Has(attachment) => attachment.to_string(),
            Self::Is(post_trait) => post_trait.to_string(),
            Self::Language(code) => code.as_str().to_owned(),
            Self::Tag(tag) => tag.as_str().to_owned(),
            Self::Mentions(acct) => acct.as_str().to_owned(),
            Self::Visibility(visibility) => visibility.to_string(),
            Self::After(when) | Self::Before(when) => when.to_string(),
            Self::During(date) => date.to_string(),
            Self::Id(comparison) | Self::Count { comparison, .. } => comparison.to_string(),
        }
    }

    /// Returns the label of the posts that meet the condition, by which an index finds them: the name and
    /// the compared form of the value, such as `tag:cats`. `None` if the condition compares numbers or times,
    /// or depends on the viewer.
    pub fn label(&self) -> Option<String> {
        let value = match self {
            Self::Source(_)
            | Self::Is(PostTrait::Followed)
            | Self::After(_)
            | Self::Before(_)
            | Self::During(_)
            | Self::Id(_)
            | Self::Count { .. } => return None,
            Self::Tag(tag) => tag.key(),
            _ => self.value(),
        };
        // A label is stored and looked up without the separator of labels.
        let value = value.replace(PostText::SEPARATOR, " ");
        Some(format!("{}:{value}", self.name()))
    }

    /// Returns the first version of the extraction ([`PostText::extraction`]) whose documents an index can search for
    /// the condition. An older document may lack it.
    pub const fn indexed_since(&self) -> i64 {
        match self {
            Self::Via(_)
            | Self::Has(Attachment::Link | Attachment::Embed)
            | Self::Is(PostTrait::Bot)
            | Self::Mentions(_)
            | Self::Visibility(_)
            | Self::After(_)
            | Self::Before(_)
            | Self::During(_) => 3,
            _ => 2,
        }
    }

    /// Reads a condition from its name, or another name for it, and its value.
    pub(super) fn read(
        name: &str,
        value: &str,
        names: &NameContext<'_>,
    ) -> Result<Self, ConditionError> {
        let condition = match name {
            "via" => Host::new(value).map(Self::Via),
            "source" => SourceName::new(value).map(Self::Source),
            "has" => named(value).map(Self::Has),
            "is" => named(value).map(Self::Is),
            "lang" | "language" => Language::new(value).map(Self::Language),
            "tag" => Tag::new(value).map(Self::Tag),
            "mentions" => Some(Self::Mentions(names.acct(value)?)),
            "visibility" => named(value).map(Self::Visibility),
            "after" => value.parse().ok().map(Self::After),
            "before" => value.parse().ok().map(Self::Before),
            "during" => match value.parse() {
                Ok(When::Date(date)) => Some(Self::During(date)),
                _ => None,
            },
            "id" => value.parse().ok().map(Self::Id),
            _ => {
                let name = if name == "favorites" {
                    "favourites"
                } else {
                    name
                };
                let kind = named(name).ok_or(ConditionError::Name)?;
                let comparison = value.parse().ok();
                comparison.map(|comparison| Self::Count { kind, comparison })
            }
        };
        condition.ok_or(ConditionError::Value)
    }
}

/// The names of all operators of the text form, without their other names.
pub(super) const OPERATORS: [&str; 20] = [
    "author",
    "instance",
    "word",
    "via",
    "source",
    "has",
    "is",
    "lang",
    "tag",
    "mentions",
    "visibility",
    "after",
    "before",
    "during",
    "id",
    "favourites",
    "boosts",
    "replies",
    "quotes",
    "views",
];

/// Describes the values that an operator accepts.
pub(super) fn expected_value(name: &str) -> &'static str {
    match name {
        "author" | "from" | "mentions" => "an account such as ann@a.example, or me",
        "instance" | "via" => "a host such as a.example",
        "has" => "media, poll, link, embed or cw",
        "is" => "reply, boost, edited, sensitive, bot or followed",
        "visibility" => "public, unlisted, private or direct",
        "after" | "before" => "a date such as 2026-01-31, or a time such as 2026-01-31T18:00Z",
        "during" => "a date such as 2026-01-31",
        "id" | "favourites" | "favorites" | "boosts" | "replies" | "quotes" | "views" => {
            "a number such as 100, or a comparison such as >100 or <=100"
        }
        _ => "a text",
    }
}

fn named<T: FromStr>(value: &str) -> Option<T> {
    value.to_ascii_lowercase().parse().ok()
}

impl Comparison {
    /// Returns true if a value compares so with the number.
    pub fn holds(self, value: impl Into<i128>) -> bool {
        let (value, number) = (value.into(), i128::from(self.number));
        match self.relation {
            Relation::Equal => value == number,
            Relation::Less => value < number,
            Relation::AtMost => value <= number,
            Relation::Greater => value > number,
            Relation::AtLeast => value >= number,
        }
    }
}

impl Comparison {
    /// Returns the numbers that compare so.
    pub fn numbers(self) -> RangeInclusive<u64> {
        let number = self.number;
        let none = RangeInclusive::new(1, 0);
        match self.relation {
            Relation::Equal => number..=number,
            Relation::Less => number.checked_sub(1).map_or(none, |last| 0..=last),
            Relation::AtMost => 0..=number,
            Relation::Greater => number.checked_add(1).map_or(none, |first| first..=u64::MAX),
            Relation::AtLeast => number..=u64::MAX,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.relation {
            Relation::Equal => "",
            Relation::Less => "<",
            Relation::AtMost => "<=",
            Relation::Greater => ">",
            Relation::AtLeast => ">=",
        };
        write!(f, "{sign}{}", self.number)
    }
}

impl FromStr for Comparison {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let digits = text.trim_start_matches(['<', '>', '=']);
        let relation = match &text[..text.len() - digits.len()] {
            "" | "=" => Relation::Equal,
            "<" => Relation::Less,
            "<=" => Relation::AtMost,
            ">" => Relation::Greater,
            ">=" => Relation::AtLeast,
            _ => return Err(ConditionError::Value),
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|_| is_number);
        let number = number.ok_or(ConditionError::Value)?;
        Ok(Self { relation, number })
    }
}

impl When {
    /// Returns true if a time, in Unix ms, is before all of it.
    pub fn is_after(self, time_ms: i64) -> bool {
        match self {
            Self::Date(date) => time_ms < start_ms(date),
            Self::Time(time) => nanoseconds(time_ms) < time.as_nanosecond(),
        }
    }

    /// Returns true if a time, in Unix ms, is after all of it.
    pub fn is_before(self, time_ms: i64) -> bool {
        match self {
            Self::Date(date) => time_ms >= start_ms(date) + DAY_MS,
            Self::Time(time) => nanoseconds(time_ms) > time.as_nanosecond(),
        }
    }
}

/// Returns true if a time, in Unix ms, is on this date in UTC.
pub(super) fn date_contains(date: Date, time_ms: i64) -> bool {
    (start_ms(date)..start_ms(date) + DAY_MS).contains(&time_ms)
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date(date) => date.fmt(f),
            Self::Time(time) => time.fmt(f),
        }
    }
}

impl FromStr for When {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let is_date = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-');
        let when = match is_date {
            true => text.parse().map(Self::Date),
            false => text.parse().map(Self::Time),
        };
        when.map_err(|_| ConditionError::Value)
    }
}

/// The first millisecond of a day in UTC, Unix ms.
fn start_ms(date: Date) -> i64 {
    let since_epoch = date.duration_since(Date::constant(1970, 1, 1));
    since_epoch.as_secs() * 1000
}

fn nanoseconds(time_ms: i64) -> i128 {
    i128::from(time_ms) * 1_000_000
}

const DAY_MS: i64 = 86_400_000;
