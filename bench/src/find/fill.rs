//! Fills a store through its own write path: a public source, and the private sources of an account, of whose posts
//! some are copies of public ones.

use std::time::{Duration, Instant};

use driftline_core::names::audience::Audience;
use driftline_id::Layout;
use driftline_store::{
    Owner, Store, Viewer, local_ids,
    source::{self, NewSource},
};
use serde_json::Value;

use super::corpus::{Author, Corpus, PostNames};
use crate::{
    database::Place,
    failure::Failure,
    ingest::{Intake, new_source, page},
    pages::RawPage,
    read::reader,
};

/// Fills a new database with the posts of a corpus, which wait for the index; returns the account with private sources.
pub(super) fn fill(place: &Place, corpus: &Corpus) -> Result<Viewer, Failure> {
    let store = place.open()?;
    let account = reader::add_account(&store, "ann")?;
    let mut public = Feed::start(&store, corpus, 0, new_source("public", &origin(0)))?;
    let private = (1..=PRIVATE_SOURCES).map(|server| {
        let new = NewSource {
            owner: Owner::Account(account),
            audience: Audience::Private,
            ..new_source(&format!("ann/home{server}"), &origin(server))
        };
        Feed::start(&store, corpus, server, new)
    });
    let mut private: Vec<Feed<'_>> = private.collect::<Result<_, _>>()?;
    for begin in (0..corpus.posts).step_by(POSTS_PER_PAGE as usize) {
        let numbers = begin..corpus.posts.min(begin + POSTS_PER_PAGE);
        let posts = numbers.clone().map(|number| Shown {
            at_ms: at_ms(number),
            number,
        });
        public.commit(&posts.collect::<Vec<_>>())?;
        for feed in &mut private {
            // One private post follows five public ones.
            let turns = numbers.clone().step_by(5).map(|number| number / 5);
            let own = turns.filter(|turn| 1 + turn % PRIVATE_SOURCES == feed.server);
            let posts = own.map(|turn| Shown {
                at_ms: at_ms(turn * 5) + MS_BETWEEN_POSTS / 2,
                number: match turn / PRIVATE_SOURCES % 10 {
                    // Copies; half of them come before the public post.
                    0..3 => {
                        let shift = POSTS_PER_PAGE % corpus.posts;
                        let ahead = if turn % 2 == 0 {
                            corpus.posts - shift
                        } else {
                            shift
                        };
                        (turn * 5 + ahead) % corpus.posts
                    }
                    _ => corpus.posts + turn,
                },
            });
            feed.commit(&posts.collect::<Vec<_>>())?;
        }
    }
    store.close_blocking();
    place.settle()?;
    Ok(Viewer::Account(account))
}

/// A source whose pages meet.
pub(crate) struct Feed<'c> {
    intake: Intake,
    corpus: &'c Corpus,
    server: u64,
    /// A word that is added to each post.
    word: Option<&'c str>,
    /// The last post, with which the next page ends.
    last: Option<Shown>,
}

/// A post of the corpus, as a server shows it.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) at_ms: i64,
    pub(crate) number: u64,
}

impl<'c> Feed<'c> {
    pub(crate) fn start(
        store: &Store,
        corpus: &'c Corpus,
        server: u64,
        new: NewSource,
    ) -> Result<Feed<'c>, Failure> {
        let added = store.write_blocking(local_ids::root(), move |tx| source::add(tx, &new, 0))?;
        let source = added.map_err(|_| Failure::new("the source's name is refused"))?;
        let intake = Intake::start(store, source, at_ms(0))?;
        Ok(Feed {
            intake,
            corpus,
            server,
            word: None,
            last: None,
        })
    }

    /// Adds a word to each post from now on.
    pub(super) fn with_word(mut self, word: &'c str) -> Self {
        self.word = Some(word);
        self
    }

    /// Commits a page with these posts, the oldest first; returns how long that took.
    pub(crate) fn commit(&mut self, posts: &[Shown]) -> Result<Duration, Failure> {
        let Some(newest) = posts.last().copied() else {
            return Ok(Duration::ZERO);
        };
        let statuses = posts
            .iter()
            .rev()
            .chain(&self.last)
            .map(|post| self.status(*post));
        let statuses: Vec<Value> = statuses.collect();
        let read = page(&RawPage {
            body: Value::from(statuses).to_string().into_bytes(),
            at_ms: newest.at_ms + 2_000,
            new: posts.len() as u64,
        })?;
        self.last = Some(newest);
        let start = Instant::now();
        self.intake.commit(read)?;
        Ok(start.elapsed())
    }

    fn status(&self, Shown { at_ms, number }: Shown) -> Value {
        let upstream_id = Layout::MASTODON.smallest_at(at_ms).to_string();
        let is_copy = (1..=PRIVATE_SOURCES).contains(&self.server) && number < self.corpus.posts;
        let author = self.corpus.author(number);
        let (author, uri) = if is_copy {
            let acct = format!("{}@sim.example", author.acct);
            let public_id = Layout::MASTODON
                .smallest_at(self::at_ms(number))
                .to_string();
            (Author { acct, ..author }, uri(0, &public_id))
        } else {
            let author = match self.server {
                0 => author,
                _ => self.corpus.author_named(
                    &format!("neighbour{}", number % 1_000),
                    false,
                    number % 1_000,
                ),
            };
            (author, uri(self.server, &upstream_id))
        };
        let names = PostNames {
            upstream_id: &upstream_id,
            uri: &uri,
            at_ms,
            author: &author,
        };
        let mut status = self.corpus.status(number, &names);
        if let Some(word) = self.word {
            status["content"] = format!("<p>{word} {}</p>", self.corpus.text(number)).into();
        }
        status
    }
}

/// The server of a source; 0 is the public one.
pub(crate) fn origin(server: u64) -> String {
    match server {
        0 => "https://sim.example".to_owned(),
        _ => format!("https://home{server}.example"),
    }
}

fn uri(server: u64, upstream_id: &str) -> String {
    format!("{}/users/0/statuses/{upstream_id}", origin(server))
}

/// The time of a public post. Private ones lie between.
pub(crate) const fn at_ms(number: u64) -> i64 {
    // October 2025: after the epoch of local IDs, before now.
    1_760_000_000_000 + number as i64 * MS_BETWEEN_POSTS
}

const MS_BETWEEN_POSTS: i64 = 86;
const PRIVATE_SOURCES: u64 = 20;
const POSTS_PER_PAGE: u64 = 2_000;
