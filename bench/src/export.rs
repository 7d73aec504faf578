//! `export`: a store's posts as JSON lines and as Parquet, next to the program `sqlite3`, which
//! reads the same rows from the database file.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    Effort,
    database::Place,
    failure::Failure,
    process::{self, Driftline, Ran, disk},
    read::fill,
    rounds::Rounds,
    table::{Table, met},
};

/// Who writes what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `driftline export bench`
    Lines,
    /// `driftline export --out DIR`: the same with a manifest, which is synced
    Folder,
    /// `driftline export --out DIR --format parquet`
    Parquet,
    /// `sqlite3 -json`, the peer
    Sqlite3,
}

/// Measures them, interleaved.
pub(crate) fn run(program: &Driftline, effort: Effort) -> Result<(), Failure> {
    let posts = if effort.quick { 2_000 } else { 1_000_000 };
    let folder = tempfile::tempdir_in(disk())?;
    let data = folder.path().join("data");
    fs::create_dir(&data)?;
    let database = data.join("driftline.db");
    fill::timeline(&Place::File(database.clone()), posts, fill::ACCOUNTS)?;
    let mut rounds = Rounds::new();
    for _ in 0..effort.rounds(5) {
        let to = folder.path().join("out");
        rounds.round(Way::ALL, |way| way.write(program, [&data, &database], &to))?;
    }
    let mut table = Table::new(
        format!("export: {posts} posts of {} MiB", size(&database)? >> 20),
        "way | rows/s | of sqlite3 | MiB written | memory at most, MiB | < 200 MiB",
    );
    for (number, way) in Way::ALL.iter().enumerate() {
        let per_s = |(ran, _): &(Ran, u64)| posts as f64 / ran.seconds;
        let (speed, ratio) = (rounds.of(number, per_s, 0), rounds.ratio(number, 3, per_s));
        let mib = rounds.of(number, |(_, bytes)| (bytes >> 20) as f64, 0);
        let peak = rounds.of(number, |(ran, _)| ran.peak_mib, 0);
        let mut peaks = rounds.0.iter().map(|round| round[number].0.peak_mib);
        let (name, is_met) = (way.name(), met(peaks.all(|mib| mib < MAX_MIB)));
        table.row(format!(
            "{name} | {speed} | {ratio} | {mib} | {peak} | {is_met}"
        ));
    }
    table.print();
    Ok(())
}

impl Way {
    const ALL: [Self; 4] = [Self::Lines, Self::Folder, Self::Parquet, Self::Sqlite3];

    const fn name(self) -> &'static str {
        match self {
            Self::Lines => "driftline, lines of JSON",
            Self::Folder => "driftline, lines in a folder",
            Self::Parquet => "driftline, Parquet in a folder",
            Self::Sqlite3 => "sqlite3 -json",
        }
    }

    /// Writes them to a path; what that took, and the bytes that are there then.
    fn write(
        self,
        program: &Driftline,
        [data, database]: [&Path; 2],
        to: &Path,
    ) -> Result<(Ran, u64), Failure> {
        let driftline = |arguments: &[&str]| program.command(data, arguments);
        let shown = to.to_str().ok_or_else(|| Failure::new("an odd path"))?;
        let mut command = match self {
            Self::Lines => driftline(&["export", "bench"]),
            Self::Folder => driftline(&["export", "--out", shown]),
            Self::Parquet => driftline(&["export", "--out", shown, "--format", "parquet"]),
            Self::Sqlite3 => {
                let mut command = Command::new("sqlite3");
                command.args(["-readonly", "-json"]);
                command.arg(database).arg(ROWS);
                command
            }
        };
        match self {
            Self::Lines | Self::Sqlite3 => command.stdout(File::create(to)?),
            Self::Folder | Self::Parquet => command.stdout(Stdio::null()),
        };
        let ran = process::run(&mut command)?;
        let bytes = size(to)?;
        let _ = fs::remove_dir_all(to);
        let _ = fs::remove_file(to);
        Ok((ran, bytes))
    }
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

/// The fields of each post that an export has.
const ROWS: &str = "select e.id, e.first_usn, e.usn, e.arrived_at_ms, p.id as post_id, p.upstream_id, p.uri, p.url,
         p.created_at_ms, p.edited_at_ms, p.deleted_at_ms, e.left_at_ms, p.read_at_ms, p.visibility, p.raw
     from entry e join post p on p.id = e.post_id order by e.first_usn";
const MAX_MIB: f64 = 200.0;
