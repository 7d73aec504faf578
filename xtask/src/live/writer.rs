//! Accounts that write at once: posts, replies, boosts, edits, deletions, polls, media.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::api::{Answer, Api};
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
        for (account, other) in self.pairs() {
            self.relate(account, other, "follow")?;
        }
        let token = Some(self.accounts[0].token.as_str());
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

    fn pairs(&self) -> impl Iterator<Item = (&'a Account, &'a Account)> {
        let accounts = self.accounts;
        let pairs = accounts
            .iter()
            .flat_map(|one| accounts.iter().map(move |other| (one, other)));
        pairs.filter(|(one, other)| one.id != other.id)
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
        let quarrels = [
            (second, "mute", "unmute", false),
            (third, "unfollow", "follow", false),
            (second, "block", "unblock", true),
        ];
        for (other, begin, end, unfollows) in quarrels {
            thread::sleep(pause);
            let begun = self.relate(first, other, begin);
            thread::sleep(pause);
            let mut ended = self.relate(first, other, end);
            if unfollows {
                ended = ended.and_then(|_| self.relate(first, other, "follow"));
                ended = ended.and_then(|_| self.relate(other, first, "follow"));
            }
            for (what, answer) in [(begin, begun), (end, ended)] {
                match answer {
                    Ok(answer) => self.count(what, answer.status),
                    Err(_) => self.record().unanswered += 1,
                }
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
            44..58 => self.boost(author, rng),
            58..63 => self.unboost(author, rng),
            63..75 => self.edit(author, rng),
            75..83 => self.delete(author, rng),
            83..88 => {
                let poll = json!({ "options": ["ebb", "flow"], "expires_in": 86_400 });
                self.post(author, rng, None, json!({ "poll": poll }))
            }
            88..92 => self.vote(author, rng),
            92..96 => self.favourite(author, rng),
            _ => self.post_picture(author, rng),
        }
    }

    fn draw(&self, rng: &mut ChaCha8Rng, fits: impl Fn(&Post) -> bool) -> Option<Post> {
        let posts = self.posts();
        let fitting: Vec<&Post> = posts
            .iter()
            .rev()
            .take(200)
            .filter(|post| fits(post))
            .collect();
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
        let tag = if is_tagged.unwrap_or_else(|| rng.random_bool(0.5)) {
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
        let mentioned = mentioned.or(drawn);
        let mention = mentioned.map(|of| format!("@{} ", self.accounts[of].name));
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
        let token = Some(self.accounts[author].token.as_str());
        let sent = self.api.send("POST", "/api/v2/media", token, &[], form)?;
        self.count("upload", sent.status);
        let Ok(media) = sent
            .success("the upload")
            .and_then(|media| media.text_of("id"))
        else {
            return Ok(());
        };
        self.post(author, rng, None, json!({ "media_ids": [media] }))
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

    fn delete(&self, author: usize, rng: &mut ChaCha8Rng) -> Result<(), TaskError> {
        let Some(post) = self.draw(rng, |post| post.author == author) else {
            return Ok(());
        };
        self.posts().retain(|other| other.uri != post.uri);
        let path = format!("/api/v1/statuses/{}", post.id);
        self.ask("delete", author, "DELETE", &path, &Value::Null)
            .map(drop)
    }

    fn boost(&self, author: usize, rng: &mut ChaCha8Rng) -> Result<(), TaskError> {
        let Some(post) = self.draw(rng, |post| !post.boosted_by.contains(&author)) else {
            return Ok(());
        };
        let path = format!("/api/v1/statuses/{}/reblog", post.id);
        if self
            .ask("boost", author, "POST", &path, &json!({}))?
            .is_some()
        {
            self.change(&post, |post| post.boosted_by.push(author));
        }
        Ok(())
    }

    fn unboost(&self, author: usize, rng: &mut ChaCha8Rng) -> Result<(), TaskError> {
        let Some(post) = self.draw(rng, |post| post.boosted_by.contains(&author)) else {
            return Ok(());
        };
        self.change(&post, |post| {
            post.boosted_by.retain(|other| *other != author);
        });
        let path = format!("/api/v1/statuses/{}/unreblog", post.id);
        self.ask("unboost", author, "POST", &path, &json!({}))
            .map(drop)
    }

    fn favourite(&self, author: usize, rng: &mut ChaCha8Rng) -> Result<(), TaskError> {
        let Some(post) = self.draw(rng, |_| true) else {
            return Ok(());
        };
        let path = format!("/api/v1/statuses/{}/favourite", post.id);
        self.ask("favourite", author, "POST", &path, &json!({}))
            .map(drop)
    }

    fn vote(&self, author: usize, rng: &mut ChaCha8Rng) -> Result<(), TaskError> {
        let drawn = self.draw(rng, |post| post.author != author && post.poll.is_some());
        let Some(poll) = drawn.and_then(|post| post.poll) else {
            return Ok(());
        };
        let path = format!("/api/v1/polls/{poll}/votes");
        let choice = json!({ "choices": [rng.random_range(0..2)] });
        self.ask("vote", author, "POST", &path, &choice).map(drop)
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
        let token = Some(self.accounts[author].token.as_str());
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
