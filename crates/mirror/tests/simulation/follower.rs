//! Stores the stream next to the polls.

use std::sync::Arc;

use driftline_core::{answer::Event, timeline::session::StreamView};
use driftline_store::{CommitEvents, CommitSummary, ReceivedEvent, commit_events, source};

use crate::{
    faults::{Broken, Operation},
    feed::Feed,
    laws::{Commit, Violation},
    simulation::{Ended, Simulation},
    trace::trace,
};

impl Simulation {
    /// Stores the events of the stream so far. As in the server, that never
    /// touches the machine, and what the store fails of it ends the stream
    /// alone.
    pub(crate) fn follow(&mut self) -> Result<(), Ended> {
        let Some(mut feed) = self.feed.take() else {
            return Ok(());
        };
        let followed = self.follow_feed(&mut feed);
        self.feed = Some(feed);
        followed
    }

    fn follow_feed(&mut self, feed: &mut Feed) -> Result<(), Ended> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let Some(scheme) = session.machine().scheme().copied() else {
            return Ok(());
        };
        if feed.open(self.now_ms) && self.drawn.cadence {
            session.stream = StreamView {
                is_open: true,
                openings: session.stream.openings + 1,
            };
        }
        if !feed.is_open() {
            return Ok(());
        }
        for mut events in feed.arrive(&mut self.upstream, self.now_ms) {
            trace(self.now_ms, &events);
            let told = events.clone();
            // By the process's wall clock, as the server dates them.
            for received in &mut events {
                received.received_at_ms += self.clock_error_ms;
            }
            let (source, fence, now_ms) = (self.source, self.fence(), events[0].received_at_ms);
            let policy = Arc::clone(&self.refresher.policy);
            let keep_deleted = self.drawn.keep_deleted;
            let outcome = self.store.write(
                &mut self.now_ms,
                Operation::Events,
                source::root(source),
                move |tx| {
                    let commit = CommitEvents {
                        source,
                        fence,
                        scheme: &scheme,
                        events: &events,
                        policy: &policy,
                        keep_deleted,
                        now_ms,
                    };
                    commit_events(tx, &commit)
                },
            );
            self.checked(&Commit::Other)?;
            if self.store.committed() {
                self.heard(&told);
            }
            match outcome {
                Ok(summary) => self.streamed_in(feed, summary)?,
                Err(Broken::Failed) => {
                    feed.break_off(self.now_ms);
                    if let Some(session) = &mut self.session {
                        session.stream.is_open = false;
                        // It may have been committed all the same.
                        session.other_changes += 1;
                    }
                    return Ok(());
                }
                Err(broken) => return Err(broken.into()),
            }
        }
        Ok(())
    }

    fn streamed_in(&mut self, feed: &mut Feed, summary: CommitSummary) -> Result<(), Ended> {
        feed.stored();
        self.streamed.new += summary.new;
        self.streamed.edited += summary.edited;
        self.streamed.deleted += summary.deleted;
        if summary.revived > 0 {
            let text = "an event revived a post".to_owned();
            return Err(Ended::Violation(Violation::Content(text)));
        }
        if summary.edited + summary.deleted + summary.left > 0
            && let Some(session) = &mut self.session
        {
            session.other_changes += 1;
        }
        Ok(())
    }

    fn heard(&mut self, told: &[ReceivedEvent]) {
        for arrived in told {
            let at_ms = arrived.received_at_ms;
            match &arrived.event {
                Event::Posted(post) | Event::Edited(post) => self.laws.shown_alive(post, at_ms),
                Event::Deleted(id) => self.laws.reported_gone(id, at_ms),
            }
        }
    }
}
