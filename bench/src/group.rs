//! Throwaway: the upper bound of group commits.
use std::{thread, time::{Duration, Instant}};
use driftline_core::answer::Page;
use driftline_db::testing::{Cluster, Link};
use driftline_store::{SecretUrl, Store, Target};
use crate::{Effort, failure::Failure, ingest::{Intake, add_source_of, page}, pages::{self, RawPage}, rounds::Spread};

fn parsed(raw: &[RawPage]) -> Result<Vec<Page>, Failure> { raw.iter().map(page).collect() }

/// `threads` writers, each `group` sources with a page of each at a time; in one transaction.
fn measure(target: &Target, threads: usize, group: usize, raw: &[RawPage], per_page: f64) -> Result<(f64, f64), Failure> {
    let store = Store::open(target.clone())?;
    let first = raw[0].at_ms;
    let mut sets = Vec::new();
    for t in 0..threads {
        let mut intakes = Vec::new();
        let mut pages = Vec::new();
        for g in 0..group {
            let name = format!("{t}-{g}");
            let source = add_source_of(&store, &name, &format!("https://{name}.example"))?;
            intakes.push(Intake::start(&store, source, first)?);
            pages.push(parsed(raw)?.into_iter());
        }
        sets.push((intakes, pages));
    }
    let before = store.stats().round_trips;
    let start = Instant::now();
    let done: Result<Vec<()>, Failure> = thread::scope(|scope| {
        let hs: Vec<_> = sets.iter_mut().map(|(intakes, pages)| scope.spawn(move || -> Result<(), Failure> {
            for _ in 0..raw.len() {
                let round: Vec<Page> = pages.iter_mut().filter_map(Iterator::next).collect();
                if intakes.len() == 1 {
                    for (i, p) in intakes.iter_mut().zip(round) { i.commit(p)?; }
                } else {
                    Intake::commit_group(intakes, round)?;
                }
            }
            Ok(())
        })).collect();
        hs.into_iter().map(|h| h.join().unwrap_or_else(|_| Err(Failure::new("panicked")))).collect()
    });
    done?;
    let s = start.elapsed().as_secs_f64();
    let trips = store.stats().round_trips - before;
    let n = (threads * group * raw.len()) as f64 * per_page;
    store.close_blocking();
    Ok((n / s, trips as f64 / n))
}

pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let count = if effort.quick { 4 } else { 60 };
    let p40 = pages::forward(40 * count)?;
    let p160 = pages::forward_of(160 * (count / 2), 160)?;
    let cluster = Cluster::start()?;
    let link = Link::delayed(cluster.url(), Duration::from_micros(2_500))?;
    let mut schema = 0;
    let variants: [(&str, usize, usize, &[RawPage], f64); 6] = [
        ("4 transactions on 4 connections", 4, 1, &p40, 1.0),
        ("8 sources on 4 connections", 8, 1, &p40, 1.0),
        ("4 pages in one transaction, one after the other", 1, 4, &p40, 1.0),
        ("2 such at once (8 sources)", 2, 4, &p40, 1.0),
        ("statements merged: pages of 160", 1, 1, &p160, 4.0),
        ("2 such at once", 2, 1, &p160, 4.0),
    ];
    for (way, url) in [("directly", cluster.url()), ("2.5 ms each way", link.url())] {
        let mut all: Vec<Vec<(f64, f64)>> = vec![Vec::new(); variants.len()];
        for _ in 0..effort.rounds(9) {
            for (at, (_, t, g, raw, per)) in variants.iter().enumerate() {
                schema += 1;
                let target = Target::Postgres { url: SecretUrl::new(url), schema: Some(format!("group_{schema}")) };
                all[at].push(measure(&target, *t, *g, raw, *per)?);
            }
        }
        for (at, (name, ..)) in variants.iter().enumerate() {
            let ratio = |base: usize| Spread::of(all[at].iter().zip(&all[base]).map(|(a, b)| a.0 / b.0), 2).to_string();
            println!("{way} | {name} | {} pages/s | to 4: {} | to 8: {} | trips {}", Spread::of(all[at].iter().map(|a| a.0), 0), ratio(0), ratio(1), Spread::of(all[at].iter().map(|a| a.1), 1));
        }
    }
    Ok(())
}
