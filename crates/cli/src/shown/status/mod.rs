//! The state of a mirror on one screen.

mod cell;
mod tables;

use bytesize::ByteSize;
use driftline_server::admin::{MirrorStatus, NodeState, SourceStatus};
use serde::Serialize;

use self::cell::{cut, short};
use super::{report::count, time::time};

/// What `driftline status` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// Whether a process holds the data folder.
    pub running: bool,
    /// The store as this machine sees it.
    pub store: StoreOverview,
    /// What the process that holds the data folder says, or the store alone.
    #[serde(flatten)]
    pub mirror: MirrorStatus,
}

/// The store as this machine sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreOverview {
    /// The database, without secrets.
    pub database: String,
    /// The size of the database file, or of the tables of PostgreSQL, if it is known.
    pub bytes: Option<u64>,
    /// The size of the file's write-ahead log.
    pub wal_bytes: Option<u64>,
    /// What of the file's file system may still be written.
    pub disk_free_bytes: Option<u64>,
    /// The size of the file's file system.
    pub disk_bytes: Option<u64>,
}

/// The room for a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Characters in a line.
    pub columns: usize,
    /// Lines; `None` for as many as there are.
    pub rows: Option<usize>,
}

/// The lines of an overview, none longer than the room, and no more than it has: sources without
/// trouble are left out first.
pub fn status(of: &Overview, room: Room) -> Vec<String> {
    let all = of.mirror.sources.len();
    let mut lines = screen(of, room.columns, all);
    let Some(rows) = room.rows else { return lines };
    if let Some(over @ 1..) = lines.len().checked_sub(rows) {
        // A line says how many are left out.
        lines = screen(of, room.columns, all.saturating_sub(over + 1).max(1));
    }
    if lines.len() > rows {
        lines.truncate(rows.saturating_sub(1));
        lines.push(cut(
            "… more in a taller window, or with --json",
            room.columns,
        ));
    }
    lines
}

fn screen(of: &Overview, columns: usize, sources: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let items = [
        ("time", second(of.mirror.now_ms)),
        ("process", process(&of.mirror)),
        ("store", store(&of.store)),
        ("intake", intake(&of.mirror)),
        ("work", work(&of.mirror)),
        ("ids", ids(&of.mirror)),
        ("feed", feed(&of.mirror)),
    ];
    for (title, text) in items.iter().filter(|(_, text)| !text.is_empty()) {
        wrap(&mut lines, &format!("{title:<9}"), text, columns);
    }
    lines.push(String::new());
    source_lines(&mut lines, &of.mirror, columns, sources);
    if !of.mirror.instances.is_empty() {
        lines.push(String::new());
        refresh_lines(&mut lines, &of.mirror, columns);
    }
    if !of.mirror.credentials.is_empty() {
        lines.push(String::new());
        lines.extend(tables::credentials(&of.mirror, columns));
        for row in &of.mirror.credentials {
            if let Some(reason) = &row.reason {
                let text = format!("{}: {reason}", row.state);
                wrap(&mut lines, &titled(&row.name), &text, columns);
            }
        }
    }
    lines.iter().map(|line| cut(line, columns)).collect()
}

fn process(of: &MirrorStatus) -> String {
    let Some(process) = &of.process else {
        return "nothing runs here: `driftline serve` reads the sources".to_owned();
    };
    let (command, version, pid) = (&process.command, &process.version, process.pid);
    let ran = short(of.now_ms - process.since_ms);
    let since = second(process.since_ms);
    format!("{command}, driftline {version}, PID {pid}, since {since} ({ran})")
}

fn store(of: &StoreOverview) -> String {
    let size = of.bytes.map(|bytes| format!(" {}", ByteSize::b(bytes)));
    let wal = of
        .wal_bytes
        .map(|bytes| format!(", WAL {}", ByteSize::b(bytes)));
    let disk = of
        .disk_free_bytes
        .map(|bytes| format!("; disk {} free", ByteSize::b(bytes)));
    let parts = [size, wal, disk].map(Option::unwrap_or_default);
    format!("{}{}", of.database, parts.concat())
}

/// Why nothing is fetched, if that is so.
fn intake(of: &MirrorStatus) -> String {
    let low = of.low_disk.as_ref();
    low.map_or_else(String::new, |low| format!("pauses: {low}"))
}

/// This process's part of the work, and who else takes part.
fn work(of: &MirrorStatus) -> String {
    let node = of
        .process
        .as_ref()
        .and_then(|process| process.node.as_ref());
    let own = of.nodes.iter().find(|row| Some(&row.name) == node);
    let others: Vec<_> = of
        .nodes
        .iter()
        .filter(|row| Some(&row.name) != node)
        .collect();
    let number =
        |is_so: fn(NodeState) -> bool| others.iter().filter(|row| is_so(row.state)).count();
    let takes_part = |state| !matches!(state, NodeState::Left | NodeState::Vanished);
    let (more, vanished) = (
        number(takes_part),
        number(|state| state == NodeState::Vanished),
    );
    let mut parts = Vec::new();
    if let Some(own) = own {
        let all = count(of.sources.len() as u64 + of.private_sources, "source");
        let state = own.state;
        parts.push(format!(
            "{state}, share {}, reads {} of {all}",
            own.share, own.sources
        ));
    }
    if own.is_some() || more > 0 {
        parts.push(match (own.is_some(), more) {
            (true, 0) => "no other process".to_owned(),
            (true, 1) => "1 other process".to_owned(),
            (true, _) => format!("{more} other processes"),
            (false, 1) => "1 process elsewhere shares it".to_owned(),
            (false, _) => format!("{more} processes elsewhere share it"),
        });
    }
    if vanished > 0 {
        parts.push(format!("{vanished} vanished"));
    }
    parts.join("; ")
}

fn ids(of: &MirrorStatus) -> String {
    match (&of.ids, &of.process) {
        (Some(ids), _) => {
            let left = short(ids.window_until_ms - of.now_ms);
            format!("node {}, layout {}, window {left}", ids.node, ids.layout)
        }
        (None, Some(_)) => "no ID service runs here".to_owned(),
        (None, None) => String::new(),
    }
}

fn feed(of: &MirrorStatus) -> String {
    match of.followers {
        Some(followers) => count(followers, "follower"),
        None => String::new(),
    }
}

/// The sources in their order, so many of them: those with trouble come before others.
fn source_lines(lines: &mut Vec<String>, of: &MirrorStatus, columns: usize, most: usize) {
    let mut shown: Vec<(usize, &SourceStatus)> = of.sources.iter().enumerate().collect();
    shown.sort_by_key(|(_, source)| !tables::has_trouble(source));
    let left_out = shown.len().saturating_sub(most);
    shown.truncate(most);
    shown.sort_by_key(|(place, _)| *place);
    let shown: Vec<&SourceStatus> = shown.into_iter().map(|(_, source)| source).collect();
    if shown.is_empty() {
        wrap(
            lines,
            "",
            "no sources yet; `driftline source add URL` adds one",
            columns,
        );
    }
    lines.extend(tables::sources(&shown, of.now_ms, columns));
    if left_out > 0 {
        let more = count(left_out as u64, "more source");
        let text = format!("{more}; `driftline source list` shows all");
        wrap(lines, "", &text, columns);
    }
    for source in shown {
        for text in tables::troubles(source) {
            wrap(lines, &titled(&source.name), &text, columns);
        }
    }
}

fn refresh_lines(lines: &mut Vec<String>, of: &MirrorStatus, columns: usize) {
    lines.extend(tables::refreshing(of, columns));
    if of.process.is_some() && !of.refreshing {
        wrap(lines, "", "this process refreshes no posts", columns);
    }
    for row in &of.instances {
        let without = "refresh.credentials names no credential of this server";
        let failure = row.failure.as_ref();
        let texts = [
            row.without_credential
                .then(|| format!("not refreshed: {without}")),
            failure.map(|why| format!("the last look-up failed: {why}")),
        ];
        for text in texts.into_iter().flatten() {
            wrap(lines, &titled(&row.instance), &text, columns);
        }
    }
}

/// A name before a sentence about what it names.
fn titled(name: &str) -> String {
    format!("{}: ", cut(name, MAX_TITLE))
}

/// Unix ms in UTC, to the second.
fn second(unix_ms: i64) -> String {
    let whole_ms = unix_ms.div_euclid(1_000) * 1_000;
    time(whole_ms).replace(".000Z", "Z")
}

/// Adds a text behind its title, in as many lines as it takes; those after the first are indented.
fn wrap(lines: &mut Vec<String>, title: &str, text: &str, columns: usize) {
    // A cursor that moves, or a line that ends, would break the screen.
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let indent = match title.chars().count() {
        // A long name would leave no room.
        width @ ..=12 => width,
        _ => 4,
    };
    let mut line = title.to_owned();
    let mut has_words = false;
    for word in text.split_whitespace() {
        let width = line.chars().count() + usize::from(has_words) + word.chars().count();
        if has_words && width > columns {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            has_words = false;
        }
        if has_words {
            line.push(' ');
        }
        line.push_str(word);
        has_words = true;
    }
    lines.push(line);
}

/// The rest of a line has to hold some words.
const MAX_TITLE: usize = 40;

#[cfg(test)]
mod tests;
