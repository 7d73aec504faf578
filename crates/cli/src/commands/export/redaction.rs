//! Taking the content of deleted posts out of files that were exported before.
//!
//! A file is never changed: another one, without the content, takes its place in the manifest, and then
//! the old one is removed.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::Path,
};

use driftline_core::feed::ChangeKind;
use driftline_server::admin::{PostHistory, PostRecord};
use driftline_store::LocalId;
use serde::Deserialize;

use super::{
    columns::{self, COLUMNS},
    file::moment,
    format::Format,
    manifest::{FileKind, ManifestFile},
    media::MediaLine,
    part::PartWriter,
    record::Record,
};

/// The posts that were deleted since a position of the feed, with when that was noticed, Unix ms.
#[derive(Debug, Default)]
pub struct Deletions(HashMap<LocalId, i64>);

impl Deletions {
    /// Takes in an event of the feed, in its order.
    pub fn note(&mut self, event: ChangeKind, post: &PostRecord) {
        match post.deleted_at_ms {
            // The row of a new one has no content.
            Some(at_ms) if event != ChangeKind::New => {
                self.0.insert(post.post_id, at_ms);
            }
            Some(_) => {}
            None => {
                self.0.remove(&post.post_id);
            }
        }
    }

    fn of(&self, post: LocalId) -> Option<i64> {
        self.0.get(&post).copied()
    }

    /// Whether a file has content of these posts. It is read up to the first row that has.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn concern(&self, dir: &Path, file: &ManifestFile, format: Format) -> io::Result<bool> {
        Ok(!self.0.is_empty() && self.pass(dir, file, format, None)? > 0)
    }

    /// Writes a file's rows, those of these posts without content. Returns how many those are.
    ///
    /// # Errors
    /// If the file cannot be read, or a row not be written.
    pub fn redact(
        &self,
        dir: &Path,
        file: &ManifestFile,
        format: Format,
        out: &mut PartWriter,
    ) -> io::Result<u64> {
        self.pass(dir, file, format, Some(out))
    }

    fn pass(
        &self,
        dir: &Path,
        file: &ManifestFile,
        format: Format,
        out: Option<&mut PartWriter>,
    ) -> io::Result<u64> {
        let opened = File::open(dir.join(&file.name))?;
        match (file.of, file.of.format(format)) {
            (kind, Format::Jsonl) => self.lines(opened, kind, out),
            (_, Format::Csv) => self.table(opened, out),
            #[cfg(feature = "parquet")]
            (_, Format::Parquet) => self.parquet(opened, out),
        }
    }

    fn lines(
        &self,
        file: File,
        kind: FileKind,
        mut out: Option<&mut PartWriter>,
    ) -> io::Result<u64> {
        let mut redacted = 0;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(redacted);
            }
            let found = match kind {
                FileKind::Media => self.media(&line)?.map(Redacted::Media),
                FileKind::History => self.history(&line)?.map(Redacted::History),
                FileKind::Posts | FileKind::Changes => self.record(&line)?.map(Redacted::Record),
            };
            redacted += u64::from(found.is_some());
            match (&mut out, found) {
                (Some(PartWriter::Lines(lines)), Some(Redacted::History(history))) => {
                    lines.write_json(&history)?;
                }
                (Some(PartWriter::Lines(lines)), Some(Redacted::Media(media))) => {
                    lines.write_json(&media)?;
                }
                (Some(PartWriter::Lines(lines)), Some(Redacted::Record(record))) => {
                    lines.write(&record)?;
                }
                (Some(PartWriter::Lines(lines)), None) => lines.write_raw(&line)?,
                #[cfg(feature = "parquet")]
                (Some(PartWriter::Parquet(_)), _) => return Err(other_format()),
                (None, Some(_)) => return Ok(redacted),
                (None, None) => {}
            }
        }
    }

    /// The row of one of these posts without content; `None` for any other, or if it has none.
    fn record(&self, line: &[u8]) -> io::Result<Option<Record>> {
        #[derive(Deserialize)]
        struct Key {
            post_id: LocalId,
            deleted_at_ms: Option<i64>,
        }
        #[derive(Deserialize)]
        struct Head {
            event: ChangeKind,
            source: String,
        }
        let key: Key = serde_json::from_slice(line)?;
        let (None, Some(at_ms)) = (key.deleted_at_ms, self.of(key.post_id)) else {
            return Ok(None);
        };
        let head: Head = serde_json::from_slice(line)?;
        let mut post: PostRecord = serde_json::from_slice(line)?;
        post.status = None;
        post.deleted_at_ms = Some(at_ms);
        Ok(Some(Record {
            event: head.event,
            source: head.source,
            post,
        }))
    }

    fn history(&self, line: &[u8]) -> io::Result<Option<PostHistory>> {
        #[derive(Deserialize)]
        struct Key {
            id: LocalId,
        }
        let key: Key = serde_json::from_slice(line)?;
        let Some(at_ms) = self.of(key.id) else {
            return Ok(None);
        };
        let mut history: PostHistory = serde_json::from_slice(line)?;
        if history.versions.is_empty() && history.counts.is_empty() {
            return Ok(None);
        }
        history.versions.clear();
        history.counts.clear();
        history.deleted_at_ms = Some(at_ms);
        Ok(Some(history))
    }

    fn media(&self, line: &[u8]) -> io::Result<Option<MediaLine>> {
        let mut media: MediaLine = serde_json::from_slice(line)?;
        let (None, Some(at_ms)) = (media.deleted_at_ms, self.of(media.post_id)) else {
            return Ok(None);
        };
        media.redact(at_ms);
        Ok(Some(media))
    }

    fn table(&self, file: File, mut out: Option<&mut PartWriter>) -> io::Result<u64> {
        let mut redacted = 0;
        let mut reader = csv::Reader::from_reader(file);
        let is_same = reader
            .headers()?
            .iter()
            .eq(COLUMNS.iter().map(|column| column.name));
        if !is_same {
            return Err(io::Error::other(
                "the file has other columns than this program writes",
            ));
        }
        let mut row = csv::StringRecord::new();
        while reader.read_record(&mut row)? {
            let cell = |name| row.get(columns::place(name)).unwrap_or_default();
            let post: Option<LocalId> = cell("post_id").parse().ok();
            let deleted_at_ms = post.and_then(|post| self.of(post));
            let found = deleted_at_ms.filter(|_| cell("deleted_at").is_empty());
            if let Some(at_ms) = found {
                redacted += 1;
                let cells = COLUMNS.iter().zip(&row).map(|(column, cell)| {
                    match (column.name, column.is_of_status()) {
                        ("deleted_at", _) => moment(at_ms),
                        (_, true) => String::new(),
                        _ => cell.to_owned(),
                    }
                });
                row = cells.collect();
            }
            match &mut out {
                Some(PartWriter::Lines(lines)) => lines.write_cells(&row)?,
                #[cfg(feature = "parquet")]
                Some(PartWriter::Parquet(_)) => return Err(other_format()),
                None if found.is_some() => return Ok(redacted),
                None => {}
            }
        }
        Ok(redacted)
    }

    #[cfg(feature = "parquet")]
    fn parquet(&self, file: File, mut out: Option<&mut PartWriter>) -> io::Result<u64> {
        use super::{columns::Value, parquet_file::ParquetRows};
        let mut redacted = 0;
        // Without the content, a look at a file costs little.
        let rows = match out {
            Some(_) => ParquetRows::open(file, |_| true),
            None => ParquetRows::open(file, |name| matches!(name, "post_id" | "deleted_at")),
        };
        let mut rows = rows.map_err(io::Error::other)?;
        while let Some(mut row) = rows.next().map_err(io::Error::other)? {
            let post: Option<LocalId> = match &row[columns::place("post_id")] {
                Value::Text(id) => id.parse().ok(),
                _ => None,
            };
            let deleted_at = columns::place("deleted_at");
            let found = post.and_then(|post| self.of(post));
            let found = found.filter(|_| row[deleted_at] == Value::Null);
            if let Some(at_ms) = found {
                redacted += 1;
                row[deleted_at] = Value::Int(at_ms);
                for (column, value) in COLUMNS.iter().zip(&mut row) {
                    if column.is_of_status() {
                        *value = Value::Null;
                    }
                }
            }
            match &mut out {
                Some(PartWriter::Parquet(file)) => {
                    file.write_row(row).map_err(io::Error::other)?;
                }
                Some(PartWriter::Lines(_)) => return Err(other_format()),
                None if found.is_some() => return Ok(redacted),
                None => {}
            }
        }
        Ok(redacted)
    }
}

enum Redacted {
    Record(Record),
    History(PostHistory),
    Media(MediaLine),
}

#[cfg(feature = "parquet")]
fn other_format() -> io::Error {
    io::Error::other("the file is of another format than its export")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn post(post_id: u64, deleted_at_ms: Option<i64>) -> PostRecord {
        let post = json!({
            "arrival": 1, "arrived_at_ms": 1, "created_at_ms": 1, "deleted_at_ms": deleted_at_ms,
            "edited_at_ms": null, "fetched_at_ms": 1, "id": "1", "left_at_ms": null,
            "post_id": post_id.to_string(), "status": null, "upstream_id": "7", "uri": null,
            "url": null, "usn": 1, "visibility": "public",
        });
        serde_json::from_value(post).unwrap()
    }

    fn deletions() -> Deletions {
        let mut deletions = Deletions::default();
        deletions.note(ChangeKind::Delete, &post(2, Some(50)));
        deletions.note(ChangeKind::Delete, &post(3, Some(60)));
        // It is back.
        deletions.note(ChangeKind::Edit, &post(3, None));
        // Its row has no content.
        deletions.note(ChangeKind::New, &post(4, Some(70)));
        deletions
    }

    #[test]
    fn a_post_that_is_back_is_not_redacted() {
        let deletions = deletions();
        for (id, expected) in [(2, Some(50)), (3, None), (4, None)] {
            assert_eq!(deletions.of(LocalId::from(id)), expected, "{id}");
        }
    }

    #[test]
    fn attachments_of_deleted_posts_lose_what_they_show() {
        let line = |id: &str| {
            json!({
                "source": "home", "post_id": id, "upstream_id": "7", "attachment_id": "1",
                "type": "image", "url": "https://example.com/1.png", "remote_url": null,
                "preview_url": "https://example.com/2.png", "description": "me", "blurhash": "U",
                "file": "ab.png", "sha256": "ab", "bytes": 3, "content_type": "image/png",
                "fetched_at_ms": 9,
            })
            .to_string()
        };
        let redacted = deletions().media(line("2").as_bytes()).unwrap().unwrap();
        let expected = json!({
            "source": "home", "post_id": "2", "upstream_id": "7", "attachment_id": "1",
            "type": "image", "url": null, "remote_url": null, "preview_url": null,
            "description": null, "blurhash": null, "deleted_at_ms": 50,
        });
        assert_eq!(serde_json::to_value(&redacted).unwrap(), expected);
        let again = serde_json::to_string(&redacted).unwrap();
        assert_eq!(deletions().media(again.as_bytes()).unwrap(), None);
        assert_eq!(deletions().media(line("3").as_bytes()).unwrap(), None);
    }
}
