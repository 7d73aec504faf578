//! The upstream's answers, read as the server reads them where they have quirks.

use driftline_core::{
    answer::{AnswerHeaders, Failure, FailureKind, Finding, LookUp, LookUps, Page, PageRequest},
    post::Post,
    upstream_id::UpstreamId,
};
use driftline_sim::{Status, Upstream};
use driftline_upstream::{Timeline, parse};

/// How the upstream is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    /// Empty for none.
    pub(crate) token: &'static str,
    /// Whether answers are read from their bytes. Else they come read, which is faster.
    pub(crate) reads: bool,
}

impl Access {
    pub(crate) fn page(
        self,
        upstream: &mut Upstream,
        now_ms: i64,
        request: &PageRequest,
    ) -> Result<Page, Failure> {
        if !self.reads {
            return upstream.answer(now_ms, self.token, request);
        }
        let (body, headers) = upstream.answer_body(now_ms, self.token, request)?;
        let items = parse::page(&body, &Timeline::Home)?;
        Ok(Page {
            listed: items.listed,
            passed: items.passed,
            unreadable: items.unreadable,
            headers,
        })
    }

    pub(crate) fn look_up(
        self,
        upstream: &mut Upstream,
        now_ms: i64,
        id: &UpstreamId,
    ) -> Result<LookUp, Failure> {
        if !self.reads {
            return upstream.look_up(now_ms, self.token, id);
        }
        let Some((body, _)) = upstream.look_up_body(now_ms, self.token, id)? else {
            return Ok(LookUp::Gone);
        };
        let post = parse::post(&body)?;
        match post.id == id.stable() {
            true => Ok(LookUp::Found(Box::new(post))),
            false => Err(Failure::new(
                FailureKind::BadId,
                "the answer is another post",
            )),
        }
    }

    pub(crate) fn look_ups(
        self,
        upstream: &mut Upstream,
        now_ms: i64,
        ids: &[UpstreamId],
    ) -> Result<LookUps, Failure> {
        if !self.reads {
            return upstream.look_ups(now_ms, self.token, ids);
        }
        if let [id] = ids {
            // As the client asks for one.
            let finding = match self.look_up(upstream, now_ms, id)? {
                LookUp::Found(post) => Finding::Found(post),
                LookUp::Gone => Finding::Missing,
                LookUp::Hidden => Finding::Hidden,
            };
            return Ok(LookUps {
                findings: vec![(id.clone(), finding)],
                headers: AnswerHeaders {
                    sent_at_ms: now_ms,
                    received_at_ms: upstream.received_at_ms(),
                    ..AnswerHeaders::default()
                },
            });
        }
        let (body, headers) = upstream.look_ups_body(now_ms, self.token, ids)?;
        let mut found = parse::page(&body, &Timeline::Home)?.posts()?;
        let findings = ids.iter().map(|id| {
            let at = found.iter().position(|post| post.id == *id);
            let finding = at.map(|at| Box::new(found.swap_remove(at)));
            let finding = finding.map_or(Finding::Missing, Finding::Found);
            (id.clone(), finding)
        });
        Ok(LookUps {
            findings: findings.collect(),
            headers,
        })
    }

    /// The post of an event.
    pub(crate) fn event(self, status: &Status) -> Post {
        match self.reads {
            true => parse::post(status.to_json().as_bytes()).unwrap(),
            false => status.to_post(),
        }
    }
}
