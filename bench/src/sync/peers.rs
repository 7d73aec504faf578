//! Replicas next to their peers.

use super::{
    Options, Sizes,
    mail::{Mail, Programs},
    notes::Notes,
    phase::{Phase, Phases},
    posts::Posts,
    pouchdb::{Packages, PouchDb},
};
use crate::{
    Effort, database,
    failure::Failure,
    process::Driftline,
    rounds::{Pairs, Spread},
    table::{Table, met},
};

/// Measures them. Returns the peers that are not installed.
pub(super) fn run(options: &Options, effort: Effort) -> Result<Vec<&'static str>, Failure> {
    let (objects, changes) = if effort.quick {
        (500, 20)
    } else {
        (20_000, 100)
    };
    let sizes = Sizes { objects, changes };
    let rounds = effort.rounds(5);
    let database = database::Server::sqlite()?;
    let packages = Packages(&options.pouchdb);
    let packages = packages.are_there().then_some(packages);
    let programs = Programs::find();
    let peers = [(POUCHDB, packages.is_some()), (MAIL, programs.is_some())];
    let missing = peers.into_iter().filter(|(_, is_there)| !is_there);

    let notes = Notes::fill(&database, sizes)?;
    next_to_pouchdb(&notes, sizes, packages, rounds)?.print();
    let posts = Posts::fill(&database, sizes)?;
    posts_next_to_pouchdb(&posts, packages, rounds)?.print();
    posts.server.close();
    next_to_mail(&notes, &options.driftline, sizes, programs, rounds)?.print();
    notes.server.close();
    Ok(missing.map(|(peer, _)| peer).collect())
}

fn next_to_pouchdb(
    notes: &Notes,
    sizes: Sizes,
    packages: Option<Packages<'_>>,
    rounds: usize,
) -> Result<Table, Failure> {
    let Sizes { objects, changes } = sizes;
    let serve = |packages: Packages<'_>| packages.serve(notes.documents(), changes);
    let pouchdb = packages.map(serve).transpose()?;
    let peer = || pouchdb.as_ref().map_or(MISSING, PouchDb::round);
    let pairs = Pairs::measure(rounds, || notes.round(), peer)?;
    let mut table = new_table(&format!(
        "{objects} notes of about 1 kB, next to PouchDB and express-pouchdb"
    ));
    add(&mut table, "full", &pairs, |of| of.full, FULL);
    let changed = format!("{changes} changes");
    add(&mut table, &changed, &pairs, |of| of.changed, CHANGED);
    add(&mut table, "no news", &pairs, |of| of.none, NONE);
    let of_many = "no news of 40 libraries";
    add(&mut table, of_many, &pairs, |of| of.none_of_many, NONE);
    Ok(table)
}

fn posts_next_to_pouchdb(
    posts: &Posts,
    packages: Option<Packages<'_>>,
    rounds: usize,
) -> Result<Table, Failure> {
    let serve = |packages: Packages<'_>| packages.serve(posts.documents()?, 0);
    let pouchdb = packages.map(serve).transpose()?;
    let peer = || pouchdb.as_ref().map_or(MISSING, PouchDb::round);
    let pairs = Pairs::measure(rounds, || posts.round(), peer)?;
    let mut table = new_table(&format!(
        "a source with {} posts of about 2.5 kB, next to PouchDB and express-pouchdb",
        posts.count
    ));
    add(&mut table, "full", &pairs, |of| of.full, FULL);
    let index = |of: &Phases| Phase {
        seconds: of.full.index_seconds,
        ..Phase::UNKNOWN
    };
    add(
        &mut table,
        "the search index of them",
        &pairs,
        index,
        REPORTED,
    );
    add(&mut table, "no news", &pairs, |of| of.none, NONE);
    add(&mut table, "verify", &pairs, |of| of.verified[0], REPORTED);
    let filtered = "verify of a part that a filter selects";
    add(&mut table, filtered, &pairs, |of| of.verified[1], REPORTED);
    Ok(table)
}

fn next_to_mail(
    notes: &Notes,
    driftline: &Driftline,
    sizes: Sizes,
    programs: Option<Programs>,
    rounds: usize,
) -> Result<Table, Failure> {
    let Sizes { objects, changes } = sizes;
    let versions = programs.as_ref().map(Programs::versions).transpose()?;
    let versions = versions.unwrap_or_else(|| MAIL.to_owned());
    let serve = |programs: Programs| programs.serve(objects, changes, notes.texts());
    let mail = programs.map(serve).transpose()?;
    let peer = || mail.as_ref().map_or(MISSING, Mail::round);
    let ours = || notes.round_by_command(driftline);
    let pairs = Pairs::measure(rounds, ours, peer)?;
    let mut table = new_table(&format!(
        "{objects} notes by `driftline replica sync`, next to as many messages of about 1 kB by {versions}"
    ));
    add(&mut table, "full", &pairs, |of| of.full, FASTER);
    let changed = format!("{changes} changes, of mail {changes} new messages");
    add(&mut table, &changed, &pairs, |of| of.changed, FASTER);
    add(&mut table, "no news", &pairs, |of| of.none, FASTER);
    Ok(table)
}

fn new_table(what: &str) -> Table {
    Table::new(
        format!("sync: {what}, on loopback"),
        "what | Driftline, ms | peer, ms | times as fast | requests | peer | kB of bodies | peer | target | met",
    )
}

/// The figures that a synchronization must reach.
#[derive(Debug, Clone, Copy)]
struct Goal {
    max_ms: f64,
    max_requests: f64,
    /// The least that the peer's time must be, as a multiple.
    times: f64,
}

fn add(
    table: &mut Table,
    what: &str,
    pairs: &Pairs<Phases>,
    phase: fn(&Phases) -> Phase,
    goal: Goal,
) {
    let both = |figure: fn(&Phase) -> f64, digits| {
        [0, 1].map(|way| pairs.of(way, |phases| figure(&phase(phases)), digits))
    };
    let times = pairs.ratio(1, 0, |phases| phase(phases).seconds);
    let ms = both(|phase| phase.seconds * 1e3, 1);
    let requests = both(|phase| phase.requests, 0);
    let kb = both(|phase| phase.bytes / 1e3, 1);
    let is_met = ms[0].median < goal.max_ms
        && (requests[0].median.is_nan() || requests[0].median <= goal.max_requests)
        && (goal.times == 0.0 || times.median >= goal.times);
    let mut targets = Vec::new();
    if goal.max_ms.is_finite() {
        targets.push(format!("< {} ms", goal.max_ms));
    }
    if goal.max_requests.is_finite() {
        targets.push(format!("<= {} requests", goal.max_requests));
    }
    if goal.times > 0.0 {
        targets.push(format!(">= {} times", goal.times));
    }
    let peer = known(ms[1]).unwrap_or_else(|| "peer missing".to_owned());
    let [times, ours_requests, peer_requests, ours_kb, peer_kb] =
        [times, requests[0], requests[1], kb[0], kb[1]]
            .map(|spread| known(spread).unwrap_or_default());
    table.row(format!(
        "{what} | {} | {peer} | {times} | {ours_requests} | {peer_requests} | {ours_kb} | {peer_kb} | {} | {}",
        ms[0],
        targets.join(", "),
        met(is_met)
    ));
}

/// A figure, unless it is unknown.
fn known(spread: Spread) -> Option<String> {
    (!spread.median.is_nan()).then(|| spread.to_string())
}

/// The figures of a peer that is not installed.
const MISSING: Result<Phases, Failure> = Ok(Phases::UNKNOWN);
const POUCHDB: &str = "PouchDB with express-pouchdb";
const MAIL: &str = "mbsync with Dovecot";

const FULL: Goal = Goal {
    max_ms: 2_000.0,
    max_requests: 25.0,
    times: 4.0,
};
const CHANGED: Goal = Goal {
    max_ms: 20.0,
    max_requests: 1.0,
    times: 4.0,
};
const NONE: Goal = Goal {
    max_ms: f64::INFINITY,
    max_requests: 1.0,
    times: 0.0,
};
const REPORTED: Goal = Goal {
    max_ms: f64::INFINITY,
    max_requests: f64::INFINITY,
    times: 0.0,
};
const FASTER: Goal = Goal {
    max_ms: f64::INFINITY,
    max_requests: f64::INFINITY,
    times: 1.0,
};
