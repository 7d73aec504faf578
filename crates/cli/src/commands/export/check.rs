//! `export check`: whether an export is whole.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read as _},
    path::Path,
};

use serde::Serialize;

use super::{
    directory::is_of_export,
    format::Format,
    manifest::{FileKind, Manifest, ManifestFile, MediaFiles},
    media,
};
use crate::{checksum, error::CliError, output, shown};

/// What was found.
#[derive(Debug, Serialize)]
struct Checked {
    files: usize,
    rows: u64,
    bytes: u64,
    /// The files of attachments, which are not among the others.
    media_files: u64,
    /// What is not as the manifest says.
    faults: Vec<String>,
    /// The attachments that were not fetched.
    missing: Vec<String>,
}

/// Checks a folder, and says what is wrong with it.
///
/// # Errors
/// [`CliError::Failed`] if it is not whole, [`CliError::Unsettled`] if all that it lacks are attachments that
/// could not be fetched.
pub fn run(dir: &Path, json: bool) -> Result<(), CliError> {
    let shown = dir.display();
    let manifest = Manifest::read(dir)?.ok_or_else(|| {
        CliError::usage(format!("{shown} has no manifest.json, so no whole export"))
    })?;
    let mut checked = Checked {
        files: manifest.files.len(),
        rows: manifest.files.iter().map(|file| file.rows).sum(),
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        media_files: 0,
        faults: Vec::new(),
        missing: Vec::new(),
    };
    for file in &manifest.files {
        let fault =
            fault(dir, file, manifest.format).unwrap_or_else(|error| Some(error.to_string()));
        checked
            .faults
            .extend(fault.map(|fault| format!("{}: {fault}", file.name)));
    }
    if let Some(expected) = manifest.media_files {
        checked.media_files = expected.count;
        let faults = media_faults(dir, &manifest, expected);
        checked
            .faults
            .extend(faults.unwrap_or_else(|error| vec![format!("media: {error}")]));
        // A file that cannot be read is a fault already.
        let missing = media::missing_files(dir, &manifest).unwrap_or_default();
        checked.missing = missing.iter().map(media::missing_line).collect();
    }
    let entries = fs::read_dir(dir)
        .map_err(|error| CliError::failed(format!("the folder {shown} cannot be read: {error}")))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_known =
            name == Manifest::NAME || manifest.files.iter().any(|file| file.name == name);
        if is_of_export(&name) && !is_known {
            // It is no part of the export, and the next one removes it.
            output::note(&format!(
                "driftline: {name} is no part of the export: one was ended before its end"
            ));
        }
    }
    output::reply(json, &checked, |checked| {
        let mut lines = checked.faults.clone();
        lines.extend(checked.missing.iter().cloned());
        lines.push(format!(
            "{}, {}, {} bytes{}: {}{}",
            shown::count(checked.files as u64, "file"),
            shown::count(checked.rows, "row"),
            checked.bytes,
            match checked.media_files {
                0 => String::new(),
                files => format!(", {}", shown::count(files, "attachment")),
            },
            match checked.faults.len() as u64 {
                0 => "all as the manifest says".to_owned(),
                faults => shown::count(faults, "fault"),
            },
            match checked.missing.len() as u64 {
                0 => String::new(),
                missing => format!(", {} not fetched", shown::count(missing, "attachment")),
            }
        ));
        lines
    })?;
    match (checked.faults.len(), checked.missing.len() as u64) {
        (0, 0) => Ok(()),
        (0, missing) => Err(CliError::Unsettled(format!(
            "{} of the export in {shown} could not be fetched",
            shown::count(missing, "attachment")
        ))),
        (_, _) => Err(CliError::failed(format!(
            "the export in {shown} is not whole"
        ))),
    }
}

/// What is wrong with the files of attachments: each has its SHA-256 in its name.
fn media_faults(dir: &Path, manifest: &Manifest, expected: MediaFiles) -> io::Result<Vec<String>> {
    let named = media::named_files(dir, manifest)?;
    let mut faults = Vec::new();
    for (name, bytes) in &named {
        let path = dir.join(media::FOLDER).join(name);
        let digest = name.split('.').next().unwrap_or_default();
        let difference = checksum::difference(&path, *bytes, digest);
        let fault = difference.unwrap_or_else(|error| Some(error.to_string()));
        faults.extend(fault.map(|fault| format!("{}/{name}: {fault}", media::FOLDER)));
    }
    let found = MediaFiles::of(&named);
    if found != expected {
        faults.push(format!(
            "{} attachments of {} bytes instead of {} of {}",
            found.count, found.bytes, expected.count, expected.bytes
        ));
    }
    Ok(faults)
}

/// What is wrong with a file, if anything.
fn fault(dir: &Path, file: &ManifestFile, format: Format) -> io::Result<Option<String>> {
    let path = dir.join(&file.name);
    if let Some(difference) = checksum::difference(&path, file.bytes, &file.sha256)? {
        return Ok(Some(difference));
    }
    let rows = rows(&path, file.of, format)?;
    Ok((rows != file.rows).then(|| format!("{rows} rows instead of {}", file.rows)))
}

fn rows(path: &Path, kind: FileKind, format: Format) -> io::Result<u64> {
    let file = File::open(path)?;
    match kind.format(format) {
        Format::Jsonl => lines(file),
        Format::Csv => {
            let mut rows = 0;
            let mut record = csv::ByteRecord::new();
            let mut reader = csv::Reader::from_reader(file);
            while reader.read_byte_record(&mut record)? {
                rows += 1;
            }
            Ok(rows)
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => {
            use parquet::file::reader::{FileReader as _, SerializedFileReader};
            let reader = SerializedFileReader::new(file).map_err(io::Error::other)?;
            let rows = reader.metadata().file_metadata().num_rows();
            Ok(u64::try_from(rows).unwrap_or_default())
        }
    }
}

fn lines(file: File) -> io::Result<u64> {
    let mut reader = BufReader::new(file);
    let mut buffer = vec![0; 1 << 16];
    let mut lines = 0;
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(lines),
            count => {
                lines += buffer[..count]
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count() as u64;
            }
        }
    }
}
