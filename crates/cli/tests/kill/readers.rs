//! Readers of the public timeline, each of whom asks any of the processes.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rand::{Rng, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::support::try_get;

/// Where the processes listen.
#[derive(Clone)]
pub struct Readers(Arc<Mutex<Vec<Option<String>>>>);

/// Readers that read until they are told to end.
pub struct Reading {
    threads: Vec<JoinHandle<Reader>>,
    ends: Arc<AtomicBool>,
}

/// A client that pages up by `min_id`, as apps do.
#[derive(Debug, Default)]
pub struct Reader {
    /// The newest post when it began.
    pub began_at: u64,
    /// The IDs that it read since.
    pub read: Vec<u64>,
    pub pages: usize,
}

impl Readers {
    pub fn new(processes: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![None; processes])))
    }

    pub fn set(&self, process: usize, url: Option<String>) {
        self.0.lock().unwrap()[process] = url;
    }

    /// Where one that runs listens.
    pub fn any(&self, rng: &mut impl Rng) -> String {
        let urls = self.0.lock().unwrap();
        let running: Vec<&String> = urls.iter().flatten().collect();
        running[rng.random_range(0..running.len())].clone()
    }

    pub fn start(&self, readers: u64, seed: u64) -> Reading {
        let ends = Arc::new(AtomicBool::new(false));
        let threads = (0..readers).map(|number| {
            let (urls, ends) = (self.clone(), Arc::clone(&ends));
            let rng = ChaCha8Rng::seed_from_u64(seed.wrapping_add(number));
            thread::spawn(move || urls.read(rng, &ends))
        });
        Reading {
            threads: threads.collect(),
            ends,
        }
    }

    fn read(&self, mut rng: ChaCha8Rng, ends: &AtomicBool) -> Reader {
        let mut reader = Reader::default();
        let mut newest = None;
        loop {
            // Read first: what is there when it is told to end is read.
            let ends = ends.load(Ordering::SeqCst);
            let query = newest.map_or("limit=1".into(), |id| format!("min_id={id}&limit=40"));
            let Some(ids) = ids(&self.any(&mut rng), &query) else {
                continue;
            };
            reader.pages += 1;
            match newest {
                None => reader.began_at = ids.first().copied().unwrap_or(0),
                Some(_) => reader.read.extend(&ids),
            }
            newest = ids.iter().max().copied().or(newest);
            if ends && ids.is_empty() {
                return reader;
            }
            thread::sleep(Duration::from_millis(rng.random_range(5..40)));
        }
    }
}

impl Reading {
    /// Lets them read what is left.
    pub fn end(self) -> Vec<Reader> {
        self.ends.store(true, Ordering::SeqCst);
        let ended = self.threads.into_iter();
        ended.map(|thread| thread.join().unwrap()).collect()
    }
}

/// The whole public timeline, paged down.
pub fn listed(url: &str) -> Vec<u64> {
    let mut listed: Vec<u64> = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < deadline, "{} posts", listed.len());
        let last = listed.last();
        let query = last.map_or("limit=40".into(), |id| format!("max_id={id}&limit=40"));
        let page = ids(url, &query).unwrap();
        if page.is_empty() {
            return listed;
        }
        listed.extend(page);
    }
}

/// Those of a page of the public timeline; none where the process is gone.
fn ids(url: &str, query: &str) -> Option<Vec<u64>> {
    let (status, body) = try_get(&format!("{url}/api/v1/timelines/public?{query}")).ok()?;
    if status != 200 {
        return None;
    }
    let page: Vec<Value> = serde_json::from_str(&body).ok()?;
    let id = |status: &Value| status["id"].as_str().unwrap().parse().unwrap();
    Some(page.iter().map(id).collect())
}
