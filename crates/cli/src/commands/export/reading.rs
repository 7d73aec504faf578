//! Reading what is to be exported, page by page.

use driftline_core::feed::{ChangeKind, ChangeKinds, FeedPosition};
use driftline_server::admin::{FeedLine, FeedPage, PostRecord, ReadFeed, ShowHistory};
use serde::Deserialize;

use super::{
    record::{Filter, Record},
    redaction::Deletions,
};
use crate::{error::CliError, store_access::StoreAccess};

/// Reads sources from a position on.
#[derive(Debug)]
pub struct Reading {
    request: ReadFeed,
    filter: Filter,
    /// The deletions on the way, if they are to be known.
    deletions: Option<Deletions>,
    /// After which position changes are handed on, too.
    changes_after: Option<FeedPosition>,
}

/// The event of the feed.
#[derive(Deserialize)]
struct EventParts {
    event: ChangeKind,
    source: String,
    post: PostRecord,
}

impl Reading {
    /// From a position on, in the feed of the named sources; of all without a name.
    pub fn new(names: &[String], filter: Filter, after: &FeedPosition) -> Self {
        Self {
            request: ReadFeed {
                sources: names.to_vec(),
                after: Some(after.to_string()),
                events: ChangeKinds::NEW,
                history: true,
                tombstones: true,
                matching: filter.matching.clone(),
                limit: PAGE,
                wait_ms: 0,
            },
            filter,
            deletions: None,
            changes_after: None,
        }
    }

    /// Hands on changes, too: those since the position at which this reading begins, or of one
    /// from the start those that come while it lasts, since its posts have the earlier ones in them.
    ///
    /// # Errors
    /// [`CliError`] if there is no such source, or the store cannot be read.
    pub async fn with_changes(mut self, access: &mut StoreAccess) -> Result<Self, CliError> {
        let mut after = self.position()?;
        if after == FeedPosition::default() {
            let now = ReadFeed {
                after: None,
                ..self.request.clone()
            };
            after = parse(&access.execute(now).await?.position)?;
        }
        self.request.events = ChangeKinds::ALL;
        self.changes_after = Some(after);
        Ok(self)
    }

    /// Notes the deletions on the way.
    pub fn with_deletions(mut self) -> Self {
        self.request.events = ChangeKinds::ALL;
        self.deletions = Some(Deletions::default());
        self
    }

    /// The next ones that are to be exported; `None` at the end of what is stored.
    ///
    /// # Errors
    /// [`CliError`] if there is no such source, or the store cannot be read.
    pub async fn next(
        &mut self,
        access: &mut StoreAccess,
    ) -> Result<Option<Vec<Record>>, CliError> {
        let page = access.execute(self.request.clone()).await?;
        if page.events.is_empty() {
            self.request.after = Some(page.position);
            return Ok(None);
        }
        let mut records = self.take(page)?;
        for record in &mut records {
            match self.filter.deleted {
                true => whole(&mut record.post, access).await?,
                false if record.post.deleted_at_ms.is_some() => record.post.status = None,
                false => {}
            }
        }
        Ok(Some(records))
    }

    /// What of a page is to be exported; the next page goes on after it.
    fn take(&mut self, page: FeedPage) -> Result<Vec<Record>, CliError> {
        let mut records = Vec::new();
        let mut position = self.position()?;
        for line in page.events {
            let record = read(&line)?;
            let before = std::mem::replace(&mut position, parse(&line.position)?);
            if let Some(deletions) = &mut self.deletions {
                // Its row may have been exported under another time.
                deletions.note(record.event, &record.post);
            }
            let after = self.changes_after.as_ref();
            let is_told = |after: &FeedPosition| is_after(after, &before, &position);
            if record.event != ChangeKind::New && !after.is_some_and(is_told) {
                continue;
            }
            if line.is_match && self.filter.takes(&record.post) {
                records.push(record);
            }
        }
        self.request.after = Some(page.position);
        Ok(records)
    }

    /// The deletions of what was read, if they were to be known.
    pub fn deletions(&self) -> Option<&Deletions> {
        self.deletions.as_ref()
    }

    /// The position after what was read.
    ///
    /// # Errors
    /// [`CliError`] if the server gave none.
    pub fn position(&self) -> Result<FeedPosition, CliError> {
        self.request
            .after
            .as_deref()
            .map_or(Ok(FeedPosition::default()), parse)
    }
}

fn parse(position: &str) -> Result<FeedPosition, CliError> {
    position.parse().map_err(CliError::failed)
}

/// Whether the event that led from one place to the next came after a position.
fn is_after(position: &FeedPosition, before: &FeedPosition, next: &FeedPosition) -> bool {
    let mut moved = next
        .sources()
        .filter(|(source, usn)| *usn > before.usn(*source));
    moved.any(|(source, usn)| usn > position.usn(source))
}

fn read(line: &FeedLine) -> Result<Record, CliError> {
    let told: Result<EventParts, _> = serde_json::from_str(line.data.get());
    let told = told.map_err(|error| {
        CliError::failed(format!(
            "the server's answer is not understood ({error}); use the same version of driftline for both"
        ))
    })?;
    Ok(Record {
        event: told.event,
        source: told.source,
        post: told.post,
    })
}

/// Gives a deleted post what it held last, where that was kept.
async fn whole(post: &mut PostRecord, access: &mut StoreAccess) -> Result<(), CliError> {
    if post.deleted_at_ms.is_some() && post.status.is_none() {
        let id = post.post_id.to_string();
        let history = access.execute(ShowHistory { post: id }).await?;
        post.status = history
            .versions
            .into_iter()
            .next_back()
            .and_then(|last| last.status);
    }
    Ok(())
}

const PAGE: u32 = 1_000;

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::{super::record::TimeOf, *};

    const ALL: Filter = Filter {
        since_ms: None,
        until_ms: None,
        by: TimeOf::Stored,
        matching: None,
        deleted: false,
    };

    /// Of a post of that ID, after which the feed is at that position.
    fn line(event: ChangeKind, post_id: u64, position: &str) -> FeedLine {
        let post = json!({
            "arrival": 1, "arrived_at_ms": 1, "created_at_ms": 1, "deleted_at_ms": null,
            "edited_at_ms": null, "fetched_at_ms": 1, "id": "1", "left_at_ms": null,
            "post_id": post_id.to_string(), "status": null, "upstream_id": "7", "uri": null,
            "url": null, "usn": 1, "visibility": "public",
        });
        let data = json!({ "event": event, "source": "sim", "post": post });
        FeedLine {
            position: position.to_owned(),
            event,
            source: "sim".to_owned(),
            is_match: true,
            data: to_raw_value(&data).unwrap(),
        }
    }

    fn taken(reading: &mut Reading, events: Vec<FeedLine>) -> Vec<(ChangeKind, u64)> {
        let position = events.last().unwrap().position.clone();
        let records = reading.take(FeedPage { events, position }).unwrap();
        let told = records.iter();
        told.map(|record| (record.event, u64::from(record.post.post_id)))
            .collect()
    }

    /// The rows of the posts were read before these changes came, or may have been.
    #[test]
    fn changes_during_the_first_export_are_handed_on() {
        use ChangeKind::{Delete, Edit, New};
        let mut reading = Reading::new(&[], ALL, &FeedPosition::default());
        reading.changes_after = Some("1:5,2:9".parse().unwrap());
        let first = vec![
            line(New, 11, "1:1"),
            line(Edit, 12, "1:4"),
            line(New, 21, "1:4,2:8"),
            line(Edit, 22, "1:4,2:9"),
            // Of another source, though the one before is past its own by then.
            line(Edit, 13, "1:6,2:9"),
            line(Delete, 23, "1:6,2:10"),
        ];
        let expected = [(New, 11), (New, 21), (Edit, 13), (Delete, 23)];
        assert_eq!(taken(&mut reading, first), expected);
        let second = vec![line(Delete, 14, "1:7,2:10"), line(Edit, 31, "1:7,2:10,3:1")];
        assert_eq!(taken(&mut reading, second), [(Delete, 14), (Edit, 31)]);
        assert_eq!(reading.position().unwrap().to_string(), "1:7,2:10,3:1");
    }

    #[test]
    fn changes_are_read_for_their_deletions_alone() {
        let events = || {
            let deleted = line(ChangeKind::Delete, 12, "1:2");
            vec![line(ChangeKind::New, 11, "1:1"), deleted]
        };
        let reading = || Reading::new(&[], ALL, &FeedPosition::default());
        assert_eq!(taken(&mut reading(), events()), [(ChangeKind::New, 11)]);
        let mut noting = reading().with_deletions();
        assert_eq!(taken(&mut noting, events()), [(ChangeKind::New, 11)]);
        assert!(noting.deletions().is_some());
    }

    /// The position of a change is compared with that before it, whether that one matches or not.
    #[test]
    fn posts_that_do_not_match_move_the_position_alone() {
        use ChangeKind::{Edit, New};
        let mut reading = Reading::new(&[], ALL, &FeedPosition::default());
        reading.changes_after = Some("1:5,2:9".parse().unwrap());
        let mut events = vec![
            line(New, 11, "1:1"),
            line(Edit, 12, "1:6"),
            line(Edit, 21, "1:6,2:8"),
            line(New, 22, "1:6,2:10"),
        ];
        events[0].is_match = false;
        events[1].is_match = false;
        assert_eq!(taken(&mut reading, events), [(New, 22)]);
        assert_eq!(reading.position().unwrap().to_string(), "1:6,2:10");
    }
}
