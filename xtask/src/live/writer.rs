//! Accounts that write at once: posts, replies, boosts, edits, deletions, polls, media.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::api::{Answer, Api, Token};
use super::server::Account;
use super::timelines::TAG;
use crate::error::TaskError;

/// The accounts, and what they have written.
pub(super) struct Writers<'a> {
    api: &'a Api,
    accounts: &'a [Account],
    /// Whether no post comes to a timeline after the others of its time: edits keep tags.
    is_steady: bool,
    posts: Mutex<Vec<Post>>,
    record: Mutex<Record>,
    stopped: AtomicBool,
}

/// What was asked of the server. A request without an answer may have been heard.
#[derive(Debug, Default, Clone)]
pub(super) struct Record {
    /// By what was asked for.
    pub(super) done: BTreeMap<&'static str, u64>,
    /// Likewise, with the status.
    pub(super) refused: BTreeMap<(&'static str, u16), u64>,
    /// Requests without an answer.
    pub(super) unanswered: u64,
    /// Edits that were asked for, by the post's name.
    pub(super) edits: HashMap<String, u64>,
}

/// A post that is there, as far as its writers know.
#[derive(Debug, Clone)]
struct Post {
    id: String,
    uri: String,
    author: usize,
    written: Instant,
    is_tagged: bool,
    poll: Option<String>,
    boosted_by: Vec<usize>,
    is_gone: bool,
}

impl<'a> Writers<'a> {
    pub(super) fn new(api: &'a Api, accounts: &'a [Account], is_steady: bool) -> Writers<'a> {
        Writers {
            api,
            accounts,
            is_steady,
            posts: Mutex::default(),
            record: Mutex::default(),
            stopped: AtomicBool::new(false),
        }
    }

    /// All follow all, and the first account has a list of the others; its ID, if there are lists.
    pub(super) fn befriend(&self) -> Result<Option<String>, TaskError> {
        for account in self.accounts {
            for other in self.accounts.iter().filter(|other| other.id != account.id) {
                self.relate(account, other, "follow")?;
            }
        }
        let token = self.token(0);
        let list = json!({ "title": "others" });
        let list = self.api.send_json("POST", "/api/v1/lists", token, &list)?;
        let Ok(list) = list.success("a list").and_then(|list| list.text_of("id")) else {
            return Ok(None);
        };
        let others = self.accounts.iter().skip(1).map(|other| other.id.as_str());
        let members = json!({ "account_ids": others.collect::<Vec<_>>() });
        let path = format!("/api/v1/lists/{list}/accounts");
        let added = self.api.send_json("POST", &path, token, &members)?;
        added.success(&path)?;
        Ok(Some(list))
    }

    fn relate(&self, account: &Account, other: &Account, how: &str) -> Result<Answer, TaskError> {
        let path = format!("/api/v1/accounts/{}/{how}", other.id);
        self.api
            .send_json("POST", &path, Some(&account.token), &json!({}))
    }

    /// Writes that many posts by all in turn.
    pub(super) fn write_history(&self, posts: usize) -> Result<(), TaskError> {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        for number in 0..posts {
            self.post(number % self.accounts.len(), &mut rng, None, json!({}))?;
        }
        Ok(())
    }

    /// Writes as one account, until it is stopped: about 4 writes in 3 s.
    pub(super) fn write(&self, author: usize, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed + author as u64);
        while !self.stopped.load(Ordering::Relaxed) {
            if self.write_one(author, &mut rng).is_err() {
                self.record().unanswered += 1;
            }
            thread::sleep(Duration::from_millis(rng.random_range(450..1_050)));
        }
    }

    /// The first account mutes, blocks and stops to follow the others, and then takes it back: what
    /// that hid returns later than the posts of its time.
    pub(super) fn quarrel(&self, pause: Duration) {
        let [first, second, third] = self.accounts else {
            return;
        };
        if self.is_steady {
            return;
        }
        for (account, other, what) in [
            (first, second, "mute"),
            (first, second, "unmute"),
            (first, third, "unfollow"),
            (first, third, "follow"),
            (first, second, "block"),
            (first, second, "unblock"),
            // A block ends what each follows of the other.
            (first, second, "follow"),
            (second, first, "follow"),
        ] {
            thread::sleep(pause);
            match self.relate(account, other, what) {
                Ok(answer) => self.count(what, answer.status),
                Err(_) => self.record().unanswered += 1,
            }
        }
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// What was asked for until now.
    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn token(&self, author: usize) -> Token<'_> {
        Some(&self.accounts[author].token)
    }

    fn posts(&self) -> MutexGuard<'_, Vec<Post>> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_one(&self, author: usize, rng: &mut ChaCha8Rng) -> Result<(), TaskError> {
        match rng.random_range(0..100) {
            0..30 => self.post(author, rng, None, json!({})),
            30..44 => match self.draw(rng, |_| true) {
                Some(parent) => self.post(author, rng, Some(&parent), json!({})),
                None => Ok(()),
            },
            44..58 => {
                let fits = |post: &Post| !post.boosted_by.contains(&author);
                self.act(author, rng, "reblog", fits, |post| {
                    post.boosted_by.push(author);
                })
            }
            58..63 => {
                let fits = |post: &Post| post.boosted_by.contains(&author);
                self.act(author, rng, "unreblog", fits, |post| {
                    post.boosted_by.retain(|other| *other != author);
                })
            }
            63..75 => self.edit(author, rng),
            75..83 => {
                let fits = |post: &Post| post.author == author;
                self.act(author, rng, "delete", fits, |post| post.is_gone = true)
            }
            83..88 => {
                let poll = json!({ "options": ["ebb", "flow"], "expires_in": 86_400 });
                self.post(author, rng, None, json!({ "poll": poll }))
            }
            88..92 => {
                let fits = |post: &Post| post.author != author && post.poll.is_some();
                self.act(author, rng, "votes", fits, |_| ())
            }
            92..96 => self.act(author, rng, "favourite", |_| true, |_| ()),
            _ => self.post_picture(author, rng),
        }
    }

    /// Does something to a drawn post, and then notes what that changed.
    fn act(
        &self,
        author: usize,
        rng: &mut ChaCha8Rng,
        what: &'static str,
        fits: impl Fn(&Post) -> bool,
        change: impl FnOnce(&mut Post),
    ) -> Result<(), TaskError> {
        let Some(post) = self.draw(rng, fits) else {
            return Ok(());
        };
        let path = match &post.poll {
            Some(poll) if what == "votes" => format!("/api/v1/polls/{poll}/votes"),
            _ if what == "delete" => format!("/api/v1/statuses/{}", post.id),
            _ => format!("/api/v1/statuses/{}/{what}", post.id),
        };
        let (method, body) = match what {
            "delete" => ("DELETE", Value::Null),
            "votes" => ("POST", json!({ "choices": [rng.random_range(0..2)] })),
            _ => ("POST", json!({})),
        };
        if self.ask(what, author, method, &path, &body)?.is_some() {
            self.change(&post, change);
        }
        Ok(())
    }

    fn draw(&self, rng: &mut ChaCha8Rng, fits: impl Fn(&Post) -> bool) -> Option<Post> {
        let posts = self.posts();
        let there = posts.iter().filter(|post| !post.is_gone);
        let fitting: Vec<&Post> = there.rev().take(200).filter(|post| fits(post)).collect();
        let drawn = rng.random_range(0..fitting.len().max(1));
        fitting.get(drawn).map(|post| (*post).clone())
    }

    fn post(
        &self,
        author: usize,
        rng: &mut ChaCha8Rng,
        parent: Option<&Post>,
        mut body: Value,
    ) -> Result<(), TaskError> {
        let what = match (parent, body.get("poll"), body.get("media_ids")) {
            (Some(_), ..) => "reply",
            (_, Some(_), _) => "poll",
            (.., Some(_)) => "picture",
            _ => "post",
        };
        let text = self.text(rng, parent.map(|post| post.author), None);
        let is_tagged = text.contains(TAG);
        body["status"] = text.into();
        body["visibility"] = match rng.random_range(0..20) {
            0 => "unlisted",
            1 => "private",
            _ => "public",
        }
        .into();
        if let Some(parent) = parent {
            body["in_reply_to_id"] = parent.id.as_str().into();
        }
        if let Some(answer) = self.ask(what, author, "POST", "/api/v1/statuses", &body)? {
            self.posts().push(Post {
                id: answer.text_of("id")?,
                uri: answer.text_of("uri")?,
                author,
                written: Instant::now(),
                is_tagged,
                poll: answer.json["poll"]["id"].as_str().map(str::to_owned),
                boosted_by: Vec::new(),
                is_gone: false,
            });
        }
        Ok(())
    }

    /// A text with characters that need escapes somewhere. Half of the texts are tagged, half mention the first account,
    /// so that its mentions soon fill a page, and a quarter any account.
    fn text(
        &self,
        rng: &mut ChaCha8Rng,
        mentioned: Option<usize>,
        is_tagged: Option<bool>,
    ) -> String {
        let number: u32 = rng.random();
        let is_tagged = is_tagged.unwrap_or_else(|| rng.random_bool(0.5));
        let tag = if is_tagged {
            format!(" #{TAG}")
        } else {
            String::new()
        };
        let accounts = self.accounts.len();
        let drawn = match rng.random_range(0..accounts * 4) {
            drawn if drawn < accounts => Some(drawn),
            drawn if drawn < accounts * 3 => Some(0),
            _ => None,
        };
        let mention = mentioned
            .or(drawn)
            .map(|of| format!("@{} ", self.accounts[of].name));
        let mention = mention.unwrap_or_default();
        format!("{mention}tide {number}: \"high\" & <low>, 5 < 6, flöd 潮 🌊{tag}")
    }

    fn post_picture(&self, author: usize, rng: &mut ChaCha8Rng) -> Result<(), TaskError> {
        let mut form = b"--tide\r\nContent-Disposition: form-data; name=\"file\"; \
            filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n"
            .to_vec();
        form.extend(PICTURE);
        form.extend(b"\r\n--tide--\r\n");
        let form = ("multipart/form-data; boundary=tide", form);
        let token = self.token(author);
        let sent = self.api.send("POST", "/api/v2/media", token, &[], form)?;
        self.count("upload", sent.status);
        match sent
            .success("the upload")
            .and_then(|media| media.text_of("id"))
        {
            Ok(media) => self.post(author, rng, None, json!({ "media_ids": [media] })),
            Err(_) => Ok(()),
        }
    }

    fn edit(&self, author: usize, rng: &mut ChaCha8Rng) -> Result<(), TaskError> {
        let Some(post) = self.draw(rng, |post| post.author == author && post.poll.is_none()) else {
            return Ok(());
        };
        *self.record().edits.entry(post.uri.clone()).or_default() += 1;
        let keeps_tag = self.is_steady || post.written.elapsed() > TAG_CHANGES;
        let text = self.text(rng, None, keeps_tag.then_some(post.is_tagged));
        let is_tagged = text.contains(TAG);
        let body = json!({ "status": text });
        let path = format!("/api/v1/statuses/{}", post.id);
        if let Some(answer) = self.ask("edit", author, "PUT", &path, &body)? {
            let id = answer.text_of("id")?;
            self.change(&post, |post| {
                post.id = id;
                post.is_tagged = is_tagged;
            });
        }
        Ok(())
    }

    fn change(&self, post: &Post, change: impl FnOnce(&mut Post)) {
        let mut posts = self.posts();
        if let Some(post) = posts.iter_mut().find(|other| other.uri == post.uri) {
            change(post);
        }
    }

    /// Asks as an account, and counts it. None if the server refused.
    fn ask(
        &self,
        what: &'static str,
        author: usize,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<Option<Answer>, TaskError> {
        let token = self.token(author);
        let answer = match body {
            Value::Null => self.api.send(method, path, token, &[], ("", "")),
            body => self.api.send_json(method, path, token, body),
        }?;
        self.count(what, answer.status);
        Ok(answer.success(what).ok())
    }

    fn count(&self, what: &'static str, status: u16) {
        let mut record = self.record();
        let count = if (200..300).contains(&status) {
            record.done.entry(what).or_default()
        } else {
            record.refused.entry((what, status)).or_default()
        };
        *count += 1;
    }
}

/// For how long edits of a post may change its tag: the last look is to find it.
const TAG_CHANGES: Duration = Duration::from_secs(45);
/// A PNG of one grey pixel.
#[rustfmt::skip]
const PICTURE: [u8; 67] = [
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
    0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00,
    0x00, 0x3a, 0x7e, 0x9b, 0x55, 0x00, 0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78,
    0xda, 0x63, 0x68, 0x00, 0x00, 0x00, 0x82, 0x00, 0x81, 0xda, 0x45, 0x08, 0x3b, 0x00,
    0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];
