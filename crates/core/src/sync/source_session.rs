use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::{
    Binding, LibraryNews, LibraryRequest, LibraryState, SyncAnswer, SyncStop, SyncedObject,
    Tombstone, progress::objects_left, session::MAX_CHUNKS,
};
use crate::predicate::Predicate;

/// One synchronization of the libraries of sources: it says which libraries to request next, and takes the answers. The
/// caller makes the requests and stores the results.
///
/// Each library is requested until it has no more news. After a failed request, or if an intake cannot be stored, the
/// caller drops the session; the next one goes on at the cursors that were stored.
#[derive(Clone, Debug)]
pub struct SourceSession {
    binding: Binding,
    /// The libraries that may have news, in the order of the requests.
    waiting: VecDeque<SourceProgress>,
    answers: u32,
}

/// The progress of a replica of a source's library. It is stored in one transaction with the objects that came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceProgress {
    /// The library: `source:ID`.
    pub library: String,
    /// The predicate that selects the posts. The server begins a full sync if it is not that of the cursor.
    pub filter: Option<Predicate>,
    /// The server's cursor. `None` begins a full sync.
    pub cursor: Option<String>,
    /// The number of the last full sync, from 1; 0 before the first.
    pub full_sync: u64,
    /// False before the first full sync is complete, and during another one.
    pub is_complete: bool,
    /// During a full sync, the number of objects that have not come yet, if the server has said how many there are.
    pub objects_left: Option<u64>,
}

/// The changes that the caller stores of an answer for one library, in one transaction and in the order of the fields.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceIntake {
    /// The progress to which the answer belongs. The caller stores nothing of it if the library's progress is another one by
    /// now: the subscription was changed meanwhile.
    pub before: SourceProgress,
    /// True if the account may not read the library any more: all its objects are removed.
    pub is_gone: bool,
    /// The tombstones. They come before the objects, since an object is there at the end of the chunk.
    pub gone: Vec<Tombstone>,
    /// The objects, each noted with the number `progress.full_sync`. Of several with one key the last one counts.
    pub objects: Vec<SyncedObject>,
    /// True if the objects with another number than `progress.full_sync` are then removed.
    pub sweeps: bool,
    /// The new progress.
    pub progress: SourceProgress,
    /// True if the library is not requested again in this synchronization.
    pub is_last: bool,
}

impl SourceSession {
    /// A synchronization of these libraries, of a replica with this binding.
    pub fn new(binding: Binding, libraries: Vec<SourceProgress>) -> Self {
        Self {
            binding,
            waiting: libraries.into(),
            answers: 0,
        }
    }

    /// The libraries of the next request, at most 199; none if the synchronization is complete. They stay the
    /// same until an answer was taken.
    pub fn next(&self) -> Vec<LibraryRequest> {
        let requested = self.waiting.iter().take(MAX_REQUESTED);
        requested
            .map(|progress| LibraryRequest {
                library: progress.library.clone(),
                cursor: progress.cursor.clone(),
                filter: progress.filter.clone(),
            })
            .collect()
    }

    /// The number of objects that the full syncs under way still bring, 0 without one. `None` if the server has not said it of
    /// each.
    pub fn objects_left(&self) -> Option<u64> {
        let mut under_way = self.waiting.iter().filter(|progress| !progress.is_complete);
        under_way.try_fold(0_u64, |sum, progress| {
            Some(sum.saturating_add(progress.objects_left?))
        })
    }

    /// Takes the answer to a request for the libraries of [`SourceSession::next`]. Other libraries in it are ignored.
    ///
    /// # Errors
    /// [`SyncStop`] if the answer is of another server or account, is not valid, or does not come nearer to an end. The
    /// caller stores nothing of it.
    pub fn pulled(&mut self, answer: SyncAnswer) -> Result<Vec<SourceIntake>, SyncStop> {
        self.binding.check(&answer.server, &answer.account)?;
        self.answers += 1;
        if self.answers > MAX_CHUNKS {
            return Err(SyncStop::TooManyChunks);
        }
        let mut all_news: HashMap<String, LibraryNews> = HashMap::new();
        for news in answer.news {
            all_news.entry(news.library.clone()).or_insert(news);
        }
        let mut intakes = Vec::new();
        let mut requested = self.waiting.clone();
        let mut rest = requested.split_off(requested.len().min(MAX_REQUESTED));
        for progress in requested {
            match all_news.remove(&progress.library) {
                Some(news) => intakes.push(progress.take_news(news)?),
                None if progress.is_complete => {}
                None => {
                    return Err(SyncStop::InvalidAnswer(
                        "a full sync ended without a last chunk",
                    ));
                }
            }
        }
        let unfinished = intakes.iter().filter(|intake| !intake.is_last);
        rest.extend(unfinished.map(|intake| intake.progress.clone()));
        // The first library of a request gets most of the answer, so another one is the first of the next.
        if !rest.is_empty() {
            rest.rotate_left(1);
        }
        self.waiting = rest;
        Ok(intakes)
    }

    /// Notes that a library is not requested any more in this synchronization.
    pub fn end(&mut self, library: &str) {
        self.waiting.retain(|progress| progress.library != library);
    }
}

impl SourceProgress {
    fn take_news(mut self, news: LibraryNews) -> Result<SourceIntake, SyncStop> {
        let is_full = match news.state {
            LibraryState::Full => true,
            LibraryState::Changes if self.is_complete => false,
            LibraryState::Changes => {
                return Err(SyncStop::InvalidAnswer("changes in a full sync"));
            }
            LibraryState::Diverged => {
                return Err(SyncStop::InvalidAnswer("a source that has diverged"));
            }
            LibraryState::Gone => return Ok(self.gone()),
        };
        let Some(cursor) = news.cursor else {
            return Err(SyncStop::InvalidAnswer("news without a cursor"));
        };
        // The changes since the start of a full sync come after its last chunk.
        let is_last = !is_full && !news.more;
        if !is_last && self.cursor.as_ref() == Some(&cursor) {
            return Err(SyncStop::NoProgress);
        }
        let before = self.clone();
        if is_full && (news.first || self.is_complete || self.cursor.is_none()) {
            self.full_sync += 1;
            self.objects_left = news.count;
        }
        let left = objects_left(self.objects_left, news.objects.len(), news.more);
        self.objects_left = left.filter(|_| is_full);
        self.is_complete = !is_full || !news.more;
        self.cursor = Some(cursor);
        Ok(SourceIntake {
            before,
            is_gone: false,
            gone: news.gone,
            objects: news.objects,
            sweeps: is_full && !news.more,
            progress: self,
            is_last,
        })
    }

    fn gone(self) -> SourceIntake {
        SourceIntake {
            before: self.clone(),
            is_gone: true,
            gone: Vec::new(),
            objects: Vec::new(),
            sweeps: false,
            progress: Self {
                cursor: None,
                is_complete: false,
                objects_left: None,
                ..self
            },
            is_last: true,
        }
    }
}

/// The largest number of libraries of sources in a request: the account's own may be named, too.
const MAX_REQUESTED: usize = 199;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn session(libraries: Vec<SourceProgress>) -> SourceSession {
        let binding = Binding {
            server: "5c".to_owned(),
            account: "113".to_owned(),
        };
        SourceSession::new(binding, libraries)
    }

    fn new(library: &str) -> SourceProgress {
        SourceProgress {
            library: library.to_owned(),
            ..SourceProgress::default()
        }
    }

    fn complete(library: &str) -> SourceProgress {
        SourceProgress {
            cursor: Some("c1".to_owned()),
            full_sync: 1,
            is_complete: true,
            ..new(library)
        }
    }

    /// News with one object.
    fn news(library: &str, state: LibraryState, cursor: &str, more: bool) -> LibraryNews {
        let object = json!({"key": format!("post:of {cursor}"), "usn": "0", "value": {}});
        LibraryNews {
            cursor: Some(cursor.to_owned()),
            more,
            objects: vec![serde_json::from_value(object).expect("an object")],
            ..LibraryNews::empty(library, state)
        }
    }

    fn answer(news: Vec<LibraryNews>) -> SyncAnswer {
        SyncAnswer {
            server: "5c".to_owned(),
            account: "113".to_owned(),
            news,
        }
    }

    fn requested(session: &SourceSession) -> Vec<(String, Option<String>)> {
        let requested = session.next().into_iter();
        requested
            .map(|request| (request.library, request.cursor))
            .collect()
    }

    fn at(library: &str, cursor: &str) -> (String, Option<String>) {
        (library.to_owned(), Some(cursor.to_owned()))
    }

    #[test]
    fn a_full_sync_that_begins_again_has_another_number() {
        let mut session = session(vec![new("source:3")]);
        let full = |cursor, first| {
            let news = news("source:3", LibraryState::Full, cursor, true);
            answer(vec![LibraryNews { first, ..news }])
        };
        for (cursor, first, number) in [("c9", true, 1), ("c8", false, 1), ("d9", true, 2)] {
            let [intake] = session
                .pulled(full(cursor, first))
                .unwrap()
                .try_into()
                .unwrap();
            assert_eq!(intake.progress.full_sync, number, "{cursor}");
        }
    }

    #[test]
    fn a_number_of_objects_that_no_library_has_is_ignored() {
        for (count, left) in [
            (100, Some(99)),
            (1 << 63, Some((1 << 63) - 1)),
            (u64::MAX, None),
        ] {
            let mut session = session(vec![new("source:3")]);
            let news = LibraryNews {
                first: true,
                count: Some(count),
                ..news("source:3", LibraryState::Full, "c9", true)
            };
            let [intake] = session
                .pulled(answer(vec![news]))
                .unwrap()
                .try_into()
                .unwrap();
            assert_eq!(intake.progress.objects_left, left);
            assert_eq!(session.objects_left(), left);
        }
    }

    #[test]
    fn a_full_sync_goes_downward_and_ends_with_the_changes_since() {
        let mut session = session(vec![new("source:3")]);
        assert_eq!(requested(&session), [("source:3".to_owned(), None)]);
        let full = |cursor, more| answer(vec![news("source:3", LibraryState::Full, cursor, more)]);
        let [first] = session
            .pulled(full("c9", true))
            .unwrap()
            .try_into()
            .unwrap();
        assert!(!first.sweeps && !first.is_last && !first.progress.is_complete);
        assert_eq!(first.progress.full_sync, 1);
        let [last] = session
            .pulled(full("c5", false))
            .unwrap()
            .try_into()
            .unwrap();
        assert!(last.sweeps && !last.is_last && last.progress.is_complete);
        assert_eq!(last.progress.full_sync, 1);
        assert_eq!(requested(&session), [at("source:3", "c5")]);
        assert_eq!(session.pulled(answer(Vec::new())), Ok(Vec::new()));
        assert!(session.next().is_empty());
    }

    #[test]
    fn another_full_sync_has_another_number_and_goes_on_where_it_was() {
        let full = |cursor, more| answer(vec![news("source:3", LibraryState::Full, cursor, more)]);
        let mut begun = session(vec![complete("source:3")]);
        let [first] = begun.pulled(full("c9", true)).unwrap().try_into().unwrap();
        assert_eq!(first.progress.full_sync, 2);
        assert!(!first.progress.is_complete);
        // Interrupted: another session has the progress.
        let mut resumed = session(vec![first.progress]);
        assert_eq!(requested(&resumed), [at("source:3", "c9")]);
        let [last] = resumed
            .pulled(full("c5", false))
            .unwrap()
            .try_into()
            .unwrap();
        assert_eq!(last.progress.full_sync, 2);
        assert!(last.sweeps);
    }

    #[test]
    fn a_full_sync_counts_down_what_its_first_chunk_says() {
        let of = |library, state, cursor: &str, more, count| LibraryNews {
            count,
            ..news(library, state, cursor, more)
        };
        let full = |library, cursor: &str, more, count| {
            of(library, LibraryState::Full, cursor, more, count)
        };
        let (one, two) = ("source:1", "source:2");
        let mut begun = session(vec![new(one), new(two)]);
        assert_eq!(begun.objects_left(), None);
        let first = vec![
            full(one, "c9", true, Some(3)),
            full(two, "c9", true, Some(10)),
        ];
        let [first, _] = begun.pulled(answer(first)).unwrap().try_into().unwrap();
        assert_eq!(first.progress.objects_left, Some(2));
        assert_eq!(begun.objects_left(), Some(11));
        // The number of a later chunk counts only if the full sync begins again.
        let next = vec![
            full(one, "c8", true, Some(70)),
            full(two, "c8", false, None),
        ];
        begun.pulled(answer(next)).unwrap();
        assert_eq!(begun.objects_left(), Some(1));

        // Interrupted: another session has the progress.
        let mut resumed = session(vec![first.progress, complete(two)]);
        assert_eq!(resumed.objects_left(), Some(2));
        let again = full(one, "d9", true, Some(8));
        let again = LibraryNews {
            first: true,
            ..again
        };
        resumed.pulled(answer(vec![again])).unwrap();
        assert_eq!(resumed.objects_left(), Some(7));
        // A server may say nothing, or too little.
        let again = full(one, "e9", true, None);
        let again = LibraryNews {
            first: true,
            ..again
        };
        resumed.pulled(answer(vec![again])).unwrap();
        assert_eq!(resumed.objects_left(), None);
        let again = full(one, "f9", true, Some(0));
        let again = LibraryNews {
            first: true,
            ..again
        };
        resumed.pulled(answer(vec![again])).unwrap();
        assert_eq!(resumed.objects_left(), Some(0));
        let last = full(one, "f8", false, None);
        let [last] = resumed
            .pulled(answer(vec![last]))
            .unwrap()
            .try_into()
            .unwrap();
        assert_eq!(last.progress.objects_left, None);
        let since = of(one, LibraryState::Changes, "f10", true, Some(5));
        resumed.pulled(answer(vec![since])).unwrap();
        assert_eq!(resumed.objects_left(), Some(0));
    }

    #[test]
    fn only_libraries_with_more_are_requested_again_another_first() {
        let names = ["source:1", "source:2", "source:3", "source:4"];
        let mut session = session(names.map(complete).into());
        let changes = |library, more| news(library, LibraryState::Changes, "c2", more);
        let news = vec![
            changes("source:1", true),
            changes("source:2", false),
            changes("source:4", true),
            changes("source:9", true),
        ];
        let intakes = session.pulled(answer(news)).unwrap();
        let last: Vec<bool> = intakes.iter().map(|intake| intake.is_last).collect();
        assert_eq!(last, [false, true, false]);
        let expected = [at("source:4", "c2"), at("source:1", "c2")];
        assert_eq!(requested(&session), expected);
    }

    #[test]
    fn a_library_that_has_ended_is_not_requested_again() {
        let mut session = session(vec![complete("source:1"), complete("source:2")]);
        let news = ["source:1", "source:2"]
            .map(|library| news(library, LibraryState::Changes, "c2", true));
        let intakes = session.pulled(answer(news.into())).unwrap();
        assert_eq!(intakes[0].before, complete("source:1"));
        session.end("source:1");
        assert_eq!(requested(&session), [at("source:2", "c2")]);
    }

    #[test]
    fn a_request_names_at_most_199_libraries() {
        let libraries = (0..300).map(|id| complete(&format!("source:{id}")));
        let mut session = session(libraries.collect());
        assert_eq!(session.next().len(), 199);
        session.pulled(answer(Vec::new())).unwrap();
        assert_eq!(session.next().len(), 101);
        session.pulled(answer(Vec::new())).unwrap();
        assert!(session.next().is_empty());
    }

    #[test]
    fn a_library_that_is_gone_loses_its_cursor() {
        let mut session = session(vec![complete("source:3")]);
        let gone = LibraryNews {
            cursor: None,
            ..news("source:3", LibraryState::Gone, "", false)
        };
        let [intake] = session
            .pulled(answer(vec![gone]))
            .unwrap()
            .try_into()
            .unwrap();
        assert!(intake.is_gone && intake.is_last && intake.objects.is_empty());
        assert_eq!(
            (intake.progress.cursor, intake.progress.full_sync),
            (None, 1)
        );
        assert!(session.next().is_empty());
    }

    #[test]
    fn answers_that_do_not_fit_stop_it() {
        let other = |server: &str, account: &str| SyncAnswer {
            server: server.to_owned(),
            account: account.to_owned(),
            news: Vec::new(),
        };
        let one = |library: SourceProgress, news: LibraryNews| {
            session(vec![library]).pulled(answer(vec![news]))
        };
        let source = "source:3";
        let of_server = session(Vec::new()).pulled(other("5d", "113"));
        assert!(matches!(of_server, Err(SyncStop::OtherServer { .. })));
        let of_account = session(Vec::new()).pulled(other("5c", "7"));
        assert!(matches!(of_account, Err(SyncStop::OtherAccount { .. })));
        let same = news(source, LibraryState::Changes, "c1", true);
        assert_eq!(one(complete(source), same), Err(SyncStop::NoProgress));
        let early = news(source, LibraryState::Changes, "c2", false);
        let diverged = news(source, LibraryState::Diverged, "c2", false);
        let without_cursor = LibraryNews {
            cursor: None,
            ..news(source, LibraryState::Full, "", false)
        };
        let silent = session(vec![new(source)]).pulled(answer(Vec::new()));
        for stopped in [
            one(new(source), early),
            one(complete(source), diverged),
            one(complete(source), without_cursor),
            silent,
        ] {
            assert!(
                matches!(stopped, Err(SyncStop::InvalidAnswer(_))),
                "{stopped:?}"
            );
        }
        // Without more, the cursor may be the same.
        let last = news(source, LibraryState::Changes, "c1", false);
        assert!(one(complete(source), last).is_ok());
    }
}
