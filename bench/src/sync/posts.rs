//! A source with posts of realistic size, which replicas copy.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Sizes, device::Device, library::ACCOUNT, phase::Phases, server::Server};
use crate::{
    database,
    failure::Failure,
    ingest::{Intake, page},
    pages::{self, RawPage},
    read::reader,
};

/// A server of the source.
pub(super) struct Posts {
    pub(super) server: Server,
    /// The number of posts.
    pub(super) count: usize,
    pages: Vec<RawPage>,
}

impl Posts {
    pub(super) fn fill(database: &database::Server, sizes: Sizes) -> Result<Self, Failure> {
        let pages = pages::forward(sizes.objects as u64)?;
        let place = database.create("sync_posts")?;
        let store = place.open()?;
        let account = reader::add_account(&store, ACCOUNT)?;
        let mut intake = Intake::of_host(&store, SOURCE, "sim", &pages)?;
        for raw in &pages {
            intake.commit(page(raw)?)?;
        }
        store.close_blocking();
        place.settle()?;
        let count: u64 = pages.iter().map(|page| page.new).sum();
        Ok(Self {
            server: Server::start(&place, account)?,
            count: usize::try_from(count)?,
            pages,
        })
    }

    /// The posts as documents.
    pub(super) fn documents(&self) -> Result<Vec<Value>, Failure> {
        let (mut seen, mut documents) = (HashSet::new(), Vec::with_capacity(self.count));
        for raw in &self.pages {
            for status in serde_json::from_slice::<Vec<Value>>(&raw.body)? {
                let uri = status["uri"].as_str().unwrap_or_default().to_owned();
                // The pages meet.
                if seen.insert(uri.clone()) {
                    documents.push(json!({ "_id": format!("post:{uri}"), "status": status }));
                }
            }
        }
        match documents.len() == self.count {
            true => Ok(documents),
            false => Err(Failure::new("posts without names of their own")),
        }
    }

    /// Copies the source to a new replica in this process.
    pub(super) fn round(&self) -> Result<Phases, Failure> {
        let device = Device::make(&self.server)?;
        let names = [SOURCE.to_owned()];
        device.subscribe(&names, None)?;
        let (full, none, verified) = (device.sync()?, device.sync()?, device.verify()?);
        device.subscribe(&names, Some(FILTER))?;
        device.sync()?;
        let phases = Phases {
            full,
            none,
            verified: [verified, device.verify()?],
            ..Phases::UNKNOWN
        };
        device.close();
        phases.checked(self.count, 0)
    }
}

const SOURCE: &str = "posts";
/// Selects some of the posts.
const FILTER: &str = "is:reply OR has:media";
