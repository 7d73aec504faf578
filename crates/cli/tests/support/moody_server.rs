//! A server before a simulated one, which fails when it is told to.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// As the server behind it.
    Good,
    /// With this status.
    Refuses(u16),
    /// With this status, and asks to wait for ten minutes.
    AsksToWait(u16),
    /// With this status to all but polls.
    RefusesLooks(u16),
    /// Not at all.
    Hangs,
    /// By closing the connection.
    HangsUp,
    /// With something in the place of this post that no post can be read from.
    Spoils(u64),
    /// As if this post were not there, and as if look-ups never found a post.
    Hides(u64),
}

/// The server. Its thread ends with the test's process.
pub struct MoodyServer {
    mood: Arc<Mutex<Mood>>,
    requests: Arc<Mutex<Vec<String>>>,
    pub url: String,
}

impl MoodyServer {
    /// Begins before the server of that URL.
    pub fn before(behind: &str, mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mood = Arc::new(Mutex::new(mood));
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let server = Self {
            mood: Arc::clone(&mood),
            requests: Arc::clone(&requests),
            url,
        };
        let behind = behind.to_owned();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (mood, requests) = (Arc::clone(&mood), Arc::clone(&requests));
                let behind = behind.clone();
                thread::spawn(move || answer(stream, &behind, &mood, &requests));
            }
        });
        server
    }

    pub fn is_now(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// How many requests it had.
    pub fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn answer(
    mut stream: TcpStream,
    behind: &str,
    mood: &Mutex<Mood>,
    requests: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        request.extend(byte);
    }
    let request = String::from_utf8(request).ok()?;
    let path = request.split(' ').nth(1)?.to_owned();
    requests.lock().unwrap().push(path.clone());
    let mood = *mood.lock().unwrap();
    let is_look = path.contains("max_id=") || path.contains("min_id=");
    let (status, body) = match mood {
        Mood::Refuses(status) | Mood::AsksToWait(status) => {
            (status, String::from("{\"error\":\"no\"}"))
        }
        Mood::RefusesLooks(status) if is_look => (status, String::from("{\"error\":\"no\"}")),
        Mood::Good | Mood::RefusesLooks(_) => super::get(&format!("{behind}{path}")),
        Mood::Hides(_) if path.contains("/statuses/") => (404, String::from("{\"error\":\"no\"}")),
        Mood::Spoils(id) | Mood::Hides(id) => {
            let (status, body) = super::get(&format!("{behind}{path}"));
            (status, without(&body, id, mood))
        }
        Mood::HangsUp => return None,
        Mood::Hangs => {
            // Until the client goes away.
            let _ = stream.read(&mut byte);
            return None;
        }
    };
    let length = body.len();
    let wait = match mood {
        Mood::AsksToWait(_) => "retry-after: 600\r\n",
        _ => "",
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{wait}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}

/// A page without a post, or with something else in its place.
fn without(body: &str, id: u64, mood: Mood) -> String {
    let Ok(Value::Array(mut items)) = serde_json::from_str(body) else {
        return body.to_owned();
    };
    let id = id.to_string();
    match mood {
        Mood::Hides(_) => items.retain(|item| item["id"] != *id),
        _ => {
            let mut spoiled = items.iter_mut().filter(|item| item["id"] == *id);
            if let Some(item) = spoiled.next() {
                *item = json!({ "id": id, "reblog": { "content": "no ID" } });
            }
        }
    }
    Value::Array(items).to_string()
}
