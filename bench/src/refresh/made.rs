//! Posts as an upstream shows them, and what it says of them when it is asked again.

use driftline_core::{
    post::{Post, Visibility},
    upstream_id::UpstreamId,
};
use driftline_id::Layout;
use driftline_sim::{SimAuthor, Status};
use driftline_store::refresh::LookupAnswer;
use driftline_upstream::parse;

use crate::{failure::Failure, pages::RawPage};

/// The posts that all others are copies of.
pub(super) const TEMPLATES: u64 = 400;
/// The time of the benchmark, Unix ms.
pub(super) const NOW_MS: i64 = 1_760_000_000_000;
/// The age of the posts, ms: they are refreshed every two hours.
const AGE_MS: i64 = 5 * 3_600_000;
/// When they were last refreshed, Unix ms.
pub(super) const REFRESHED_MS: i64 = NOW_MS - 2 * 3_600_000;

/// The upstream ID of a post by its number, as a number.
pub(super) fn upstream_id(number: u64) -> Result<i64, Failure> {
    Ok(i64::try_from(Layout::MASTODON.smallest_at(NOW_MS - AGE_MS))? + i64::try_from(number)?)
}

/// What the upstream answers of a post that was stored as its template is: of ten posts seven are
/// as they were, two have a few favourites more, and one has so many more that libraries are notified.
/// No post is edited or deleted.
pub(super) fn answer(upstream_id: &str) -> Result<Post, Failure> {
    let first = self::upstream_id(0)?;
    let number = u64::try_from(upstream_id.parse::<i64>()? - first)?;
    let mut status = template(number % TEMPLATES);
    status.id = UpstreamId::new(upstream_id);
    status.favourites += match number % 10 {
        0 => 15,
        1 | 2 => 1,
        _ => 0,
    };
    Ok(parse::post(status.to_json().as_bytes())?)
}

/// Whether an answer shows other counts than are stored.
pub(super) fn is_changed(answer: &LookupAnswer) -> bool {
    matches!(answer, LookupAnswer::Found(post) if post.counts.favourites != Some(FAVOURITES))
}

/// The share of answers with new counts, as [`answer`] gives them.
pub(super) const CHANGED: &str = "of the answers 70 % are unchanged, 20 % have new counts, 10 % have counts that libraries are notified";

/// The templates, in pages that go forward and meet.
pub(super) fn pages() -> Result<Vec<RawPage>, Failure> {
    let (mut pages, mut above) = (Vec::new(), 0);
    while above < TEMPLATES {
        // The newest of the page before is listed again.
        let from = above - u64::from(above > 0);
        let until = TEMPLATES.min(from + u64::from(crate::pages::LIMIT));
        let mut body = Vec::new();
        for number in (from..until).rev() {
            body.push(if body.is_empty() { b'[' } else { b',' });
            let mut status = template(number);
            status.id = UpstreamId::new(upstream_id(number)?.to_string());
            body.extend_from_slice(status.to_json().as_bytes());
        }
        body.push(b']');
        pages.push(RawPage {
            body,
            at_ms: FIRST_PAGE_MS + (pages.len() as i64 + 1) * 1_000,
            new: until - above,
        });
        above = until;
    }
    Ok(pages)
}

/// When the page before the first was read, Unix ms.
pub(super) const FIRST_PAGE_MS: i64 = NOW_MS - AGE_MS + 60_000;

fn template(number: u64) -> Status {
    let author = 1 + number % 40;
    let length = 300 + usize::try_from(number * 37 % 700).unwrap_or(0);
    Status {
        id: UpstreamId::new("1"),
        first_id: None,
        created_at_ms: NOW_MS - AGE_MS,
        edited_at_ms: None,
        visibility: Visibility::Public,
        content: TEXT
            .chars()
            .cycle()
            .skip(number as usize % 40)
            .take(length)
            .collect(),
        author: SimAuthor {
            id: author,
            name: format!("drifter{author}"),
            host: author
                .is_multiple_of(2)
                .then(|| "elsewhere.example".to_owned()),
        },
        replies: 5,
        boosts: 10,
        favourites: FAVOURITES,
        boost_of: None,
    }
}

const FAVOURITES: i64 = 40;
const TEXT: &str =
    "The drift line lies where the water was at its highest, and what it brought lies there. ";
