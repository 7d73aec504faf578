//! `export`: a store's posts as JSON lines and as Parquet, next to the program `sqlite3` and to duckdb, which read the
//! same rows from the database file.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::Args;
use rusqlite::Connection;

use crate::{
    Effort,
    failure::Failure,
    paths::{DRIFTLINE, disk},
    program::{self, Ran},
    read,
    rounds::Spread,
    table::{Table, met},
};

/// What `export` takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Posts of the store
    #[arg(long = "export-posts", value_name = "N")]
    posts: Option<usize>,
    /// The driftline binary, built for release
    #[arg(long, value_name = "PATH", default_value = DRIFTLINE)]
    driftline: PathBuf,
    /// A Python with duckdb and its extension that reads SQLite; without one duckdb is not measured
    #[arg(long, value_name = "PATH")]
    duckdb: Option<PathBuf>,
}

impl Options {
    /// With that binary.
    pub(crate) fn of(driftline: PathBuf) -> Self {
        Self {
            posts: None,
            driftline,
            duckdb: None,
        }
    }
}

/// Who writes what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `driftline export bench`
    Lines,
    /// `driftline export --out DIR`: the same with a manifest, which is synced
    Folder,
    /// `driftline export --out DIR --format parquet`
    Parquet,
    /// `sqlite3 -json`
    Sqlite3,
    /// duckdb's `copy … to … (format parquet)`
    Duckdb,
}

/// Measures them, interleaved.
pub(crate) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let posts = if effort.quick { 2_000 } else { 1_000_000 };
    let posts = options.posts.unwrap_or(posts);
    let folder = tempfile::tempdir_in(disk())?;
    let data = folder.path().join("data");
    fs::create_dir(&data)?;
    let database = data.join("driftline.db");
    read::fill::timeline(&database, posts, read::fill::ACCOUNTS)?;
    // The SQLite in duckdb's extension is too old for the condition of an index.
    let plain = folder.path().join("plain.db");
    fs::copy(&database, &plain)?;
    Connection::open(&plain)?.execute_batch("drop index post_url")?;
    let mut ways = vec![Way::Lines, Way::Folder, Way::Parquet];
    let sqlite3 = Command::new("sqlite3").arg("--version").output();
    match sqlite3.is_ok_and(|output| output.status.success()) {
        true => ways.push(Way::Sqlite3),
        false => println!("sqlite3 is not installed, so it is not measured"),
    }
    match options.duckdb {
        Some(_) => ways.push(Way::Duckdb),
        None => println!("no --duckdb was given, so it is not measured"),
    }
    let mut ran: Vec<Vec<Ran>> = ways.iter().map(|_| Vec::new()).collect();
    let mut bytes = vec![0; ways.len()];
    for _ in 0..effort.rounds(5) {
        for ((way, ran), bytes) in ways.iter().zip(&mut ran).zip(&mut bytes) {
            let to = folder.path().join("out");
            ran.push(way.write(options, [&data, &plain], &to)?);
            *bytes = size(&to)?;
            let _ = fs::remove_dir_all(&to);
            let _ = fs::remove_file(&to);
        }
    }
    let mut table = Table::new(
        format!("export: {posts} posts of {} MiB", size(&database)? >> 20),
        [
            "way",
            "rows/s",
            "peer",
            "of the peer",
            "MiB written",
            "memory at most, MiB",
            "< 200 MiB",
        ],
    );
    for (number, way) in ways.iter().enumerate() {
        let seconds = |place: usize| ran[place].iter().map(|ran| ran.seconds);
        let peer = way
            .peer()
            .and_then(|peer| ways.iter().position(|it| *it == peer));
        let ratio = peer.map(|peer| {
            let ratios = seconds(peer)
                .zip(seconds(number))
                .map(|(peer, own)| peer / own);
            Spread::of(ratios, 2).to_string()
        });
        let peaks = || ran[number].iter().map(|ran| ran.peak_mib);
        table.row([
            way.name().to_owned(),
            Spread::of(seconds(number).map(|s| posts as f64 / s), 0).to_string(),
            peer.map_or("-", |peer| ways[peer].name()).to_owned(),
            ratio.unwrap_or_else(|| "-".to_owned()),
            (bytes[number] >> 20).to_string(),
            Spread::of(peaks(), 0).to_string(),
            match way.peer() {
                Some(_) => met(peaks().all(|mib| mib < MAX_MIB)),
                None => "-".to_owned(),
            },
        ]);
    }
    table.print();
    Ok(())
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Lines => "driftline, lines of JSON",
            Self::Folder => "driftline, lines in a folder",
            Self::Parquet => "driftline, Parquet in a folder",
            Self::Sqlite3 => "sqlite3 -json",
            Self::Duckdb => "duckdb, Parquet",
        }
    }

    const fn peer(self) -> Option<Self> {
        match self {
            Self::Lines | Self::Folder => Some(Self::Sqlite3),
            Self::Parquet => Some(Self::Duckdb),
            Self::Sqlite3 | Self::Duckdb => None,
        }
    }

    fn write(
        self,
        options: &Options,
        [data, plain]: [&Path; 2],
        to: &Path,
    ) -> Result<Ran, Failure> {
        let driftline = |arguments: &[&str]| {
            let mut command = Command::new(&options.driftline);
            command
                .arg("--quiet")
                .arg("--data")
                .arg(data)
                .args(arguments);
            command
        };
        let shown = to.to_str().ok_or_else(|| Failure::new("an odd path"))?;
        let mut command = match self {
            Self::Lines => driftline(&["export", "bench"]),
            Self::Folder => driftline(&["export", "--out", shown]),
            Self::Parquet => driftline(&["export", "--out", shown, "--format", "parquet"]),
            Self::Sqlite3 => {
                let mut command = Command::new("sqlite3");
                command.args(["-readonly", "-json"]);
                command.arg(plain).arg(rows(""));
                command
            }
            Self::Duckdb => {
                let python = options.duckdb.as_ref();
                let python = python.ok_or_else(|| Failure::new("no --duckdb"))?;
                let mut command = Command::new(python);
                command
                    .args(["-c", DUCKDB])
                    .arg(plain)
                    .arg(shown)
                    .arg(rows("s."));
                command
            }
        };
        match self {
            Self::Lines | Self::Sqlite3 => command.stdout(File::create(to)?),
            Self::Folder | Self::Parquet | Self::Duckdb => command.stdout(Stdio::null()),
        };
        program::run(&mut command)
    }
}

/// What an export has of each post.
fn rows(schema: &str) -> String {
    format!(
        "select e.id, e.first_usn, e.usn, e.arrived_at_ms, p.id as post_id, p.upstream_id, p.uri, p.url,
             p.created_at_ms, p.edited_at_ms, p.deleted_at_ms, e.left_at_ms, p.read_at_ms, p.visibility, p.raw
         from {schema}entry e join {schema}post p on p.id = e.post_id order by e.first_usn"
    )
}

fn size(of: &Path) -> Result<u64, Failure> {
    if of.is_file() {
        return Ok(fs::metadata(of)?.len());
    }
    let mut bytes = 0;
    for entry in fs::read_dir(of)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// Takes the database, the file to write, and the query.
const DUCKDB: &str = "
import os, sys
import duckdb, duckdb_extension_sqlite_scanner as extension
folder = os.path.join(os.path.dirname(extension.__file__), 'extensions', 'v' + duckdb.__version__)
connection = duckdb.connect()
connection.load_extension(os.path.join(folder, 'sqlite_scanner.duckdb_extension'))
connection.execute(f\"attach '{sys.argv[1]}' as s (type sqlite, read_only)\")
connection.execute(f\"copy ({sys.argv[3]}) to '{sys.argv[2]}' (format parquet, compression zstd)\")
";
const MAX_MIB: f64 = 200.0;
