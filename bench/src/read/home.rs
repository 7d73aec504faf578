//! `home`: pages of home timelines over HTTP on both databases, next to a bare handler that finds the same posts by
//! the same statements, a request with a token next to the same without, and what a process of many posts needs.

use std::time::Instant;

use tokio::runtime::Runtime;

use super::{
    CONNECTIONS, Case, POST_BYTES, Site, Tables,
    client::{self, Asked, Load},
    fill, memory,
    reader::{self, AUTHORS, Reader},
};
use crate::{
    Effort,
    database::Server,
    failure::Failure,
    rounds::Pairs,
    table::{Table, Target},
};

/// Measures pages of two readers in a small and a large store.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    // Pages of few posts are short.
    let (sizes, requests, min_bytes) = match effort.quick {
        true => ([2_000, 10_000], 200, POST_BYTES),
        false => ([100_000, 1_000_000], 2_000, 20 * POST_BYTES),
    };
    let runtime = Runtime::new()?;
    let mut pages = Tables::new("home: pages of 20", requests);
    let mut tokens = Table::new(
        "home: pages of the public timeline, requests/s",
        "database | posts | with a token | without | ratio | target | met",
    );
    let mut memory = memory::table(sizes[1]);
    for server in [Server::sqlite()?, Server::postgres()?] {
        let mut sites = Vec::new();
        for posts in sizes {
            sites.push(open(&runtime, &server, posts, min_bytes)?);
        }
        pages.measure(server.name(), &mut sites, requests, effort.rounds(3))?;
        for site in &sites {
            let cells = format!("{} | {}", server.name(), site.posts);
            let rates = token_rates(site, requests, effort.rounds(3))?;
            tokens.compare(cells, &rates, |rate| *rate, 0, Target::OfPeer(0.9));
        }
        for site in &sites {
            runtime.block_on(site.store.close());
        }
        if let Some(large) = sites.last() {
            memory::measure(server.name(), large, min_bytes, effort, &mut memory)?;
        }
    }
    pages.print();
    tokens.print();
    memory.print();
    Ok(())
}

/// A store with two readers.
fn open(
    runtime: &Runtime,
    server: &Server,
    posts: usize,
    min_bytes: usize,
) -> Result<Site, Failure> {
    let place = server.create(&format!("home_{posts}"))?;
    let ids = fill::timeline(&place, posts, AUTHORS)?;
    reader::add_all(&place)?;
    let mut site = Site::open(runtime, place, ids)?;
    // Below all of these there are full pages of both readers.
    site.ids.drain(..posts / 2);
    for (name, reader, connections, max_ms) in [
        ("500 follows", Reader::Few, CONNECTIONS, 10.0),
        ("5,000 follows, 4,990 silent", Reader::Many, 1, 20.0),
        (
            "5,000 follows, 4,990 silent",
            Reader::Many,
            CONNECTIONS,
            50.0,
        ),
    ] {
        let token = reader::log_in(site.addresses[0], reader)?;
        site.cases.push(Case {
            name: name.to_owned(),
            connections,
            max_ms,
            asked: [
                reader.asks_driftline(token, min_bytes),
                reader.asks_bare(min_bytes),
            ],
            times: Pairs::new(),
        });
    }
    Ok(site)
}

/// Requests a second with a token and without.
fn token_rates(site: &Site, requests: usize, rounds: usize) -> Result<Pairs<f64>, Failure> {
    let without = Asked {
        target: "/api/v1/timelines/public?limit=40&since_id=".to_owned(),
        token: None,
        min_bytes: 40 * POST_BYTES,
    };
    let with = Asked {
        token: site.cases[0].asked[0].token.clone(),
        ..without.clone()
    };
    let load = Load {
        connections: CONNECTIONS,
        requests,
    };
    let rate = |asked: &Asked| -> Result<f64, Failure> {
        let start = Instant::now();
        client::read(site.addresses[0], asked, &site.ids, load, 0)?;
        Ok(requests as f64 / start.elapsed().as_secs_f64())
    };
    // The first requests warm the server up.
    rate(&without)?;
    rate(&with)?;
    Pairs::measure(rounds, || rate(&with), || rate(&without))
}
