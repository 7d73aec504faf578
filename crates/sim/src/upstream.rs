//! A whole upstream in virtual time.

use driftline_core::{
    answer::{
        AnswerHeaders, Failure, FailureKind, Finding, Listed, LookUp, LookUps, Page, PageRequest,
        Throttle,
    },
    upstream_id::UpstreamId,
};

use crate::{
    config::{BatchAbility, WorldConfig},
    faults::{Decision, Faults},
    faults_config::{FaultKind, FaultsConfig, PoisonAnswer},
    quota::{Endpoint, RequestKind},
    status::Status,
    truth::Truth,
    world::{Found, World, answer_order},
};

/// A world and its faults behind one pure call: time goes in, a page or a
/// failure comes out.
#[derive(Debug, Clone)]
pub struct Upstream {
    world: World,
    faults: Faults,
    traffic: Traffic,
    received_at_ms: i64,
}

/// What an upstream was asked and what it gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Pages asked for.
    pub page_requests: u64,
    /// Posts looked up one by one.
    pub look_ups: u64,
    /// Look-ups of several posts, each one request.
    pub batches: u64,
    /// Requests, of all kinds, that failed.
    pub failures: u64,
    /// Posts on the pages that were answered.
    pub posts_served: u64,
    /// Posts that look-ups of several answered with.
    pub posts_refreshed: u64,
    /// Events sent on streams.
    pub events: u64,
}

impl Upstream {
    /// An upstream at its start; the faults are the configuration's.
    pub fn new(mut config: WorldConfig, seed: u64) -> Self {
        let start_ms = config.start_ms;
        config.quirks = config.quirks.of_kind(Endpoint::Home);
        Self {
            faults: Faults::new(config.faults.clone(), seed, start_ms)
                .with_quirks(config.quirks.clone()),
            world: World::new(config, seed),
            traffic: Traffic::default(),
            received_at_ms: start_ms,
        }
    }

    /// Answers a page request that a token sends at a time, Unix ms. Posts that cannot be read are
    /// left out.
    ///
    /// The timeline is read half a round trip later; a delayed answer still
    /// shows what was read then.
    ///
    /// # Errors
    /// What a client would make of the fault that the request met.
    pub fn answer(
        &mut self,
        sent_at_ms: i64,
        token: &str,
        request: &PageRequest,
    ) -> Result<Page, Failure> {
        let (statuses, headers) = self.page(sent_at_ms, token, request)?;
        let quirks = &self.world.config().quirks;
        let listed: Vec<Listed> = statuses
            .iter()
            .filter(|status| !quirks.is_unreadable(status.first_id().as_str()))
            .map(|status| Listed {
                position: status.id.clone(),
                post: status.to_post(),
            })
            .collect();
        let posts: usize = listed.iter().map(|listed| listed.post.raw.len()).sum();
        let commas_and_brackets = listed.len().saturating_sub(1) + 2;
        Ok(Page {
            headers: AnswerHeaders {
                body_bytes: (posts + commas_and_brackets) as u64,
                ..headers
            },
            listed,
            passed: Vec::new(),
            unreadable: Vec::new(),
        })
    }

    /// The same as the bytes of the answer.
    ///
    /// # Errors
    /// As for [`Upstream::answer`].
    pub fn answer_body(
        &mut self,
        sent_at_ms: i64,
        token: &str,
        request: &PageRequest,
    ) -> Result<(Vec<u8>, AnswerHeaders), Failure> {
        let (statuses, headers) = self.page(sent_at_ms, token, request)?;
        let body = self.world.config().quirks.page_body(&statuses);
        Ok(with_size(body, headers))
    }

    fn page(
        &mut self,
        sent_at_ms: i64,
        token: &str,
        request: &PageRequest,
    ) -> Result<(Vec<Status>, AnswerHeaders), Failure> {
        self.traffic.page_requests += 1;
        let paged =
            request.since_id.is_some() || request.max_id.is_some() || request.min_id.is_some();
        let asked = RequestKind {
            endpoint: Endpoint::Home,
            paged,
        };
        let arrived = self.arrive(sent_at_ms, token, asked)?;
        let mut statuses = if arrived.empty {
            Vec::new()
        } else {
            self.world.page(arrived.read_at_ms, request)
        };
        statuses.retain(|status| !self.faults.hides(arrived.read_at_ms, token, &status.id));
        self.traffic.posts_served += statuses.len() as u64;
        Ok((statuses, arrived.headers))
    }

    /// Looks a post up for a token at a time, Unix ms.
    ///
    /// # Errors
    /// What a client would make of the fault that the request met, of another post's answer, and of
    /// a post that cannot be read.
    pub fn look_up(
        &mut self,
        sent_at_ms: i64,
        token: &str,
        id: &UpstreamId,
    ) -> Result<LookUp, Failure> {
        let Some((status, _)) = self.find_one(sent_at_ms, token, id)? else {
            return Ok(LookUp::Gone);
        };
        let quirks = &self.world.config().quirks;
        if quirks.is_unreadable(status.first_id().as_str()) {
            return Err(self.fail(FailureKind::BadId, "the answer is no post", None));
        }
        if status.id != *id {
            return Err(self.fail(FailureKind::BadId, "the answer is another post", None));
        }
        Ok(LookUp::Found(Box::new(status.to_post())))
    }

    /// The same as the bytes of the answer; `None` for 404.
    ///
    /// # Errors
    /// What a client would make of the fault that the request met.
    pub fn look_up_body(
        &mut self,
        sent_at_ms: i64,
        token: &str,
        id: &UpstreamId,
    ) -> Result<Option<(Vec<u8>, AnswerHeaders)>, Failure> {
        let found = self.find_one(sent_at_ms, token, id)?;
        Ok(found.map(|(status, headers)| {
            let body = self.world.config().quirks.look_up_body(&status);
            with_size(body, headers)
        }))
    }

    fn find_one(
        &mut self,
        sent_at_ms: i64,
        token: &str,
        id: &UpstreamId,
    ) -> Result<Option<(Status, AnswerHeaders)>, Failure> {
        self.traffic.look_ups += 1;
        let arrived = self.arrive(sent_at_ms, token, RequestKind::plain(Endpoint::LookUp))?;
        if arrived.empty {
            return Err(self.fail(FailureKind::BadJson, "the answer is an empty list", None));
        }
        self.check_token(token)?;
        if let Some(failure) = self.poison(std::slice::from_ref(id), &arrived) {
            return Err(failure);
        }
        let found = self.find(arrived.read_at_ms, token, id).shown();
        Ok(found.map(|status| (status, arrived.headers)))
    }

    /// Refuses a look-up without a token where one is needed.
    fn check_token(&mut self, token: &str) -> Result<(), Failure> {
        match self.world.config().quirks.refuses_look_up(token) {
            true => Err(self.fail(FailureKind::Unauthorized, "401 Unauthorized", None)),
            false => Ok(()),
        }
    }

    /// Looks several posts up in one request that a token sends at a time,
    /// Unix ms. Each ID is answered once, in the order of the answer with
    /// those that it leaves out last.
    ///
    /// # Errors
    /// What a client would make of the fault that the request met; of a
    /// server that looks up one post at a time ([`FailureKind::NotFound`] or
    /// [`FailureKind::UnexpectedStatus`]); of too many IDs and of poison ones.
    pub fn look_ups(
        &mut self,
        sent_at_ms: i64,
        token: &str,
        ids: &[UpstreamId],
    ) -> Result<LookUps, Failure> {
        let (found, headers) = self.find_several(sent_at_ms, token, ids)?;
        let quirks = &self.world.config().quirks;
        let mut body_bytes = 2;
        let mut findings = Vec::with_capacity(found.len());
        let mut missing = Vec::new();
        for (id, status) in found {
            match status.filter(|it| it.id == id && !quirks.is_unreadable(it.first_id().as_str())) {
                Some(status) => {
                    let post = status.to_post();
                    body_bytes += post.raw.len() as u64 + u64::from(!findings.is_empty());
                    findings.push((id, Finding::Found(Box::new(post))));
                }
                None => missing.push((id, Finding::Missing)),
            }
        }
        findings.append(&mut missing);
        Ok(LookUps {
            findings,
            headers: AnswerHeaders {
                body_bytes,
                ..headers
            },
        })
    }

    /// The same as the bytes of the answer, a list.
    ///
    /// # Errors
    /// As for [`Upstream::look_ups`].
    pub fn look_ups_body(
        &mut self,
        sent_at_ms: i64,
        token: &str,
        ids: &[UpstreamId],
    ) -> Result<(Vec<u8>, AnswerHeaders), Failure> {
        let (found, headers) = self.find_several(sent_at_ms, token, ids)?;
        let statuses: Vec<Status> = found.into_iter().filter_map(|(_, status)| status).collect();
        let body = self.world.config().quirks.look_ups_body(&statuses);
        Ok(with_size(body, headers))
    }

    /// What a request for several posts finds of each.
    #[allow(clippy::type_complexity)]
    fn find_several(
        &mut self,
        sent_at_ms: i64,
        token: &str,
        ids: &[UpstreamId],
    ) -> Result<(Vec<(UpstreamId, Option<Status>)>, AnswerHeaders), Failure> {
        self.traffic.batches += 1;
        let arrived = self.arrive(sent_at_ms, token, RequestKind::plain(Endpoint::LookUps))?;
        self.check_token(token)?;
        let batches = self.world.config().batches;
        let throttle = arrived.headers.throttle;
        let ability = match batches.ability {
            BatchAbility::Served => None,
            BatchAbility::NotFound => Some((FailureKind::NotFound, "404 Not Found")),
            BatchAbility::MethodNotAllowed => {
                Some((FailureKind::UnexpectedStatus, "405 Method Not Allowed"))
            }
        };
        if let Some((kind, message)) = ability {
            return Err(self.fail(kind, message, throttle));
        }
        let ids = answer_order(ids, batches.shuffled);
        if ids.len() > usize::from(batches.most.unwrap_or(MASTODON_BATCH)) {
            let message = "422 Unprocessable Entity: too many IDs";
            return Err(self.fail(FailureKind::Refused, message, throttle));
        }
        if let Some(failure) = self.poison(&ids, &arrived) {
            return Err(failure);
        }
        let found: Vec<_> = ids
            .into_iter()
            .map(|id| {
                let found = match arrived.empty {
                    true => None,
                    false => self.find(arrived.read_at_ms, token, &id).shown(),
                };
                (id, found)
            })
            .collect();
        let shown = found.iter().filter(|(_, found)| found.is_some());
        self.traffic.posts_refreshed += shown.count() as u64;
        Ok((found, arrived.headers))
    }

    /// Changes what goes wrong from now on.
    pub fn change_faults(&mut self, change: impl FnOnce(&mut FaultsConfig)) {
        self.faults.change(change);
    }

    fn find(&mut self, now_ms: i64, token: &str, id: &UpstreamId) -> Found {
        match self.world.answer_look_up(now_ms, id) {
            Found::Shown(_) if self.faults.hides(now_ms, token, id) => Found::Hidden,
            found => found,
        }
    }

    /// The failure of a look-up that names a poison ID.
    fn poison(&mut self, ids: &[UpstreamId], arrived: &Arrived) -> Option<Failure> {
        let (kind, message) = match self.faults.poisoned(ids)? {
            PoisonAnswer::BadRequest => (FailureKind::Refused, "400 Bad Request"),
            PoisonAnswer::Unprocessable => (FailureKind::Refused, "422 Unprocessable Entity"),
            PoisonAnswer::InternalError => (FailureKind::ServerError, "500 Internal Server Error"),
            PoisonAnswer::Forbidden => (FailureKind::Forbidden, "403 Forbidden"),
            PoisonAnswer::Silence => (FailureKind::Unreachable, "the connection broke"),
        };
        Some(self.fail(kind, message, arrived.headers.throttle))
    }

    /// When the last answer or failure reached the client, Unix ms. A stall
    /// ends when the upstream gives up; a client with a shorter timeout takes
    /// the earlier time.
    pub fn received_at_ms(&self) -> i64 {
        self.received_at_ms
    }

    /// What was asked and given so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// The world, to ask without faults and without being counted.
    pub fn world(&mut self) -> &mut World {
        &mut self.world
    }

    /// Every post that was ever visible up to a time, Unix ms.
    pub fn truth(&mut self, now_ms: i64) -> Truth {
        self.world.truth(now_ms)
    }

    fn arrive(
        &mut self,
        sent_at_ms: i64,
        token: &str,
        asked: RequestKind,
    ) -> Result<Arrived, Failure> {
        let decision = self.faults.decide(sent_at_ms, token, asked);
        let hold_ms = decision.fault.map_or(0, |fault| fault.hold_ms);
        let there_ms = decision.round_trip_ms / 2;
        let answered_at_ms = sent_at_ms + decision.round_trip_ms + hold_ms;
        self.received_at_ms = answered_at_ms;
        let mut empty = false;
        match decision.fault.map(|fault| fault.kind) {
            None | Some(FaultKind::Delay) => {}
            Some(FaultKind::EmptyPage) => empty = true,
            Some(kind) => return Err(self.failure(kind, &decision)),
        }
        let headers = AnswerHeaders {
            sent_at_ms,
            received_at_ms: answered_at_ms,
            round_trip_ms: decision.round_trip_ms + hold_ms,
            date_ms: self.faults.date_ms(sent_at_ms + there_ms + hold_ms),
            throttle: decision.throttle,
            body_bytes: 0,
            limit: None,
        };
        Ok(Arrived {
            read_at_ms: sent_at_ms + there_ms,
            empty,
            headers,
        })
    }

    fn failure(&mut self, kind: FaultKind, decision: &Decision) -> Failure {
        let (kind, message) = match kind {
            FaultKind::Throttled => (FailureKind::Throttled, "429 Too Many Requests"),
            FaultKind::InternalError => (FailureKind::ServerError, "500 Internal Server Error"),
            FaultKind::BadGateway => (FailureKind::ServerError, "502 Bad Gateway"),
            FaultKind::Unavailable => (FailureKind::ServerError, "503 Service Unavailable"),
            FaultKind::Stall => (FailureKind::TimedOut, "nothing came for too long"),
            FaultKind::Cut => (FailureKind::Truncated, "the body ended early"),
            FaultKind::Html => (FailureKind::NotJson, "the body is an HTML page"),
            FaultKind::ErrorObject => (FailureKind::ErrorBody, "the body is an error object"),
            FaultKind::Unauthorized => (FailureKind::Unauthorized, "401 Unauthorized"),
            FaultKind::Lost => (FailureKind::Unreachable, "the connection broke"),
            FaultKind::BadJson | FaultKind::EmptyPage | FaultKind::Delay => {
                (FailureKind::BadJson, "the body is not a list of posts")
            }
        };
        let silent = matches!(kind, FailureKind::TimedOut | FailureKind::Unreachable);
        let throttle = decision.throttle.filter(|_| !silent);
        self.fail(kind, message, throttle)
    }

    fn fail(&mut self, kind: FailureKind, message: &str, throttle: Option<Throttle>) -> Failure {
        self.traffic.failures += 1;
        Failure {
            throttle,
            ..Failure::new(kind, message)
        }
    }
}

/// A request that reached the world.
struct Arrived {
    read_at_ms: i64,
    /// Whether it is answered with an empty list all the same.
    empty: bool,
    headers: AnswerHeaders,
}

fn with_size(body: Vec<u8>, mut headers: AnswerHeaders) -> (Vec<u8>, AnswerHeaders) {
    headers.body_bytes = body.len() as u64;
    (body, headers)
}

/// The most IDs that Mastodon looks up at once.
pub(crate) const MASTODON_BATCH: u16 = 20;
