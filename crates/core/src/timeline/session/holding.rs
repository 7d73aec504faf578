//! The reading, holding and committing of a backlog's pages by a session.

use std::{collections::VecDeque, sync::Arc};

use super::{
    Action, Finish, PageCommit, Pending, RequestKind, Session,
    backlog::{Backlog, BacklogStep},
    move_times,
};
use crate::timeline::{RequestPurpose, Step};

impl Session {
    /// Holds a page or commits it, or all held pages.
    pub(super) fn take_in(&mut self, commit: Arc<PageCommit>) -> Action {
        if self.is_stale {
            return Action::Finish(Finish::Held);
        }
        let (settings, abilities) = (Arc::clone(&self.settings), self.abilities);
        let mut backlog = match self.backlog.take() {
            Some(mut backlog) => {
                backlog.add(&settings, abilities, commit);
                backlog
            }
            None => {
                let (before, max_bytes) = (&self.machine, self.max_held_bytes);
                let clock = self.clock;
                let begun = Backlog::begin(before, &settings, abilities, &commit, clock, max_bytes);
                let is_poll = commit.request.purpose == RequestPurpose::Poll;
                self.is_behind &= begun.is_some() || !is_poll;
                match begun.filter(|_| !self.is_behind) {
                    Some(backlog) => backlog,
                    None => return self.commit_next(VecDeque::from([commit]), 0),
                }
            }
        };
        match backlog.next(&settings, abilities, self.clock) {
            BacklogStep::Read(_) => {
                self.machine.catch_up();
                let is_long = backlog.len() == REPORTED_PAGES;
                self.backlog = Some(backlog);
                if !is_long {
                    return Action::Finish(Finish::Held);
                }
                self.pending = Pending::Save(Finish::Held);
                Action::SaveMachine
            }
            BacklogStep::Whole => self.commit_backlog(backlog),
            BacklogStep::TooLong => {
                self.is_behind = true;
                self.commit_backlog(backlog)
            }
        }
    }

    /// Continues to read a backlog, or commits it.
    pub(super) fn read_on(&mut self, mut backlog: Backlog) -> Action {
        match backlog.next(&self.settings, self.abilities, self.clock) {
            BacklogStep::Read(step) => {
                self.backlog = Some(backlog);
                if let Step::Wait { until_ms } = step {
                    return Action::Finish(self.wait(until_ms));
                }
                self.pending = Pending::Request(step);
                Action::Reserve(RequestKind::Page)
            }
            BacklogStep::Whole => self.commit_backlog(backlog),
            BacklogStep::TooLong => {
                self.is_behind = true;
                self.commit_backlog(backlog)
            }
        }
    }

    /// Handles a quota without remaining requests. A backlog is not held for longer than allowed.
    pub(super) fn refused(&mut self, until_ms: i64) -> Action {
        let wait_ms = until_ms.saturating_sub(self.now_ms);
        let is_held = |backlog: &mut Backlog| wait_ms <= backlog.left_ms(self.clock);
        match self.backlog.take_if(|backlog| !is_held(backlog)) {
            Some(backlog) => {
                self.is_behind = true;
                self.commit_backlog(backlog)
            }
            None => Action::Finish(Finish::Wait { until_ms }),
        }
    }

    /// Commits held pages: first their posts, the oldest first, then the pages in the order of the
    /// machine's requests.
    pub(super) fn commit_backlog(&mut self, backlog: Backlog) -> Action {
        self.machine.adopt_requests(&backlog.machine);
        let is_ordered = !backlog.has_posts_below();
        let pages = backlog.into_pages();
        if is_ordered {
            return self.commit_next(pages.into(), 0);
        }
        self.pending = Pending::PostsStored(pages.clone().into());
        Action::StorePosts(pages.into())
    }

    /// Commits the first of these pages, whose times move with a step of the wall clock, in ms.
    pub(super) fn commit_next(
        &mut self,
        mut pages: VecDeque<Arc<PageCommit>>,
        step_ms: i64,
    ) -> Action {
        if step_ms != 0 {
            for commit in &mut pages {
                move_times(&mut Arc::make_mut(commit).page.headers, step_ms);
            }
        }
        let Some(commit) = pages.pop_front() else {
            return Action::Finish(Finish::Read);
        };
        self.pending = Pending::PageCommit(Arc::clone(&commit), pages);
        Action::CommitPage(commit)
    }
}

/// From this number of held pages on, the stored machine reports that the source is catching up.
/// Most backlogs end with the second page.
const REPORTED_PAGES: usize = 2;
