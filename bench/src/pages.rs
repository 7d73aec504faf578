//! Pages of Mastodon posts of realistic size, made from the simulated world.

use driftline_core::{answer::PageRequest, upstream_id::UpstreamId};
use driftline_sim::{Status, World, WorldConfig};

use crate::failure::Failure;

/// A page as it would arrive.
#[derive(Debug)]
pub(crate) struct RawPage {
    /// The JSON.
    pub(crate) body: Vec<u8>,
    /// When it was answered, Unix ms.
    pub(crate) at_ms: i64,
    /// How many of its posts are on no page before it.
    pub(crate) new: u64,
}

/// Pages of 40 posts of 2 to 3 kB that go forward and meet: the oldest post of each is the newest
/// of the one before. At least `posts` posts in all.
pub(crate) fn forward(posts: u64) -> Result<Vec<RawPage>, Failure> {
    let config = WorldConfig {
        publish_for_ms: None,
        ..WorldConfig::punctual(POSTS_PER_S)
    };
    let start_ms = config.start_ms;
    let end_ms = start_ms + 2 * (posts as f64 / POSTS_PER_S * 1000.0) as i64 + 60_000;
    let mut world = World::new(config, SEED);
    let mut pages = Vec::new();
    let (mut above, mut made) = (0_u64, 0);
    while made < posts {
        let request = PageRequest {
            min_id: Some(UpstreamId::new(above.to_string())),
            limit: LIMIT,
            ..PageRequest::default()
        };
        let mut statuses = world.page(end_ms, &request);
        let newest = statuses
            .first()
            .ok_or_else(|| Failure::new("the simulated world has too few posts"))?;
        let id: u64 = newest.id.as_str().parse()?;
        let new = statuses.len() as u64 - u64::from(above > 0);
        pages.push(RawPage {
            at_ms: newest.created_at_ms + LAG_MS,
            body: body(&mut statuses),
            new,
        });
        made += new;
        above = id - 1;
    }
    Ok(pages)
}

/// The page's JSON, each post's text made as long as real ones are.
fn body(statuses: &mut [Status]) -> Vec<u8> {
    let mut body = Vec::with_capacity(statuses.len() * 2_600);
    for (index, status) in statuses.iter_mut().enumerate() {
        body.push(if index == 0 { b'[' } else { b',' });
        body.extend_from_slice(padded(status).as_bytes());
    }
    body.push(b']');
    body
}

/// The JSON of a post with a text that brings it to between 2 and 3 kB.
fn padded(status: &mut Status) -> String {
    let spread: usize = status.id.as_str().bytes().map(usize::from).sum();
    let size = 2_000 + (spread * 37) % 1_000;
    let json = status.to_json();
    let Some(missing) = size.checked_sub(json.len()) else {
        return json;
    };
    let text = TEXT.chars().cycle().skip(spread % 40).take(missing);
    status.content.extend(text);
    status.to_json()
}

const SEED: u64 = 1;
const POSTS_PER_S: f64 = 40.0;
pub(crate) const LIMIT: u16 = 40;
/// From the newest post to the answer.
const LAG_MS: i64 = 2_000;
const TEXT: &str =
    "The drift line lies where the water was at its highest, and what it brought lies there. ";
