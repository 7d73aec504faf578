//! Real replicas, with their databases on disk.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
    time::Instant,
};

use driftline_replica::{
    Client, Direction, Replica, Retries, ServerUrl, SyncContext, SyncProgress, Token, Verified,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{library::source_names, phase::Phase, server::Server};
use crate::{failure::Failure, http};

/// A replica of a server's account.
pub(super) struct Device<'s> {
    server: &'s Server,
    runtime: Runtime,
    client: Client,
    replica: Replica,
    _folder: TempDir,
}

impl<'s> Device<'s> {
    /// An empty one.
    pub(super) fn make(server: &'s Server) -> Result<Self, Failure> {
        let runtime = http::one_thread()?;
        let folder = tempfile::tempdir()?;
        let url: ServerUrl = server.url().parse()?;
        let token = Token::read(server.token()?.as_bytes())?;
        let client = Client::new(&url, token, Retries::none())?;
        let path = folder.path().join("replica");
        let made = runtime.block_on(Replica::init(&path, &client, &mut random));
        let (replica, _) = made?;
        Ok(Self {
            server,
            runtime,
            client,
            replica,
            _folder: folder,
        })
    }

    /// Subscribes to sources with these names, which the next synchronization copies.
    pub(super) fn subscribe(&self, names: &[String], filter: Option<&str>) -> Result<(), Failure> {
        let mut random = random;
        let subscribed = self
            .replica
            .subscribe(&self.client, names, filter, &mut random);
        self.runtime.block_on(subscribed)?;
        Ok(())
    }

    /// Synchronizes, and returns the cost.
    pub(super) fn sync(&self) -> Result<Phase, Failure> {
        let begun = Instant::now();
        let mut stored = begun;
        let phase = self.measure(|device, context| {
            let mut note = |of: &SyncProgress| {
                if of.indexed == 0 {
                    stored = Instant::now();
                }
            };
            let mut context = SyncContext {
                progress: Some(&mut note),
                ..SyncContext::new(context.now_ms, &mut *context.random)
            };
            let synced = device
                .replica
                .sync(&device.client, &mut context, Direction::Both);
            Ok(device.runtime.block_on(synced)?.work.pulled)
        })?;
        let index_seconds = phase.seconds - (stored - begun).as_secs_f64();
        Ok(Phase {
            seconds: phase.seconds - index_seconds,
            index_seconds,
            ..phase
        })
    }

    /// Compares itself with the server, which must have the same, and returns the cost.
    pub(super) fn verify(&self) -> Result<Phase, Failure> {
        self.measure(|device, context| {
            let verified = device.replica.verify(&device.client, context);
            match device.runtime.block_on(verified)? {
                Verified { is_equal: true, .. } => Ok(0),
                verified => Err(Failure::new(format!(
                    "the replica is another than the library: {verified:?}"
                ))),
            }
        })
    }

    /// Subscribes to the sources of a filled library, synchronizes, and returns the cost of doing so again without news.
    pub(super) fn sync_many(&self) -> Result<Phase, Failure> {
        self.subscribe(&source_names(), None)?;
        self.sync()?;
        self.sync()
    }

    /// Closes its database.
    pub(super) fn close(self) {
        self.runtime.block_on(self.replica.close());
    }

    fn measure(
        &self,
        work: impl FnOnce(&Self, &mut SyncContext<'_>) -> Result<usize, Failure>,
    ) -> Result<Phase, Failure> {
        let mut random = random;
        let mut context = SyncContext::new(driftline_runtime::now_ms(), &mut random);
        let before = self.server.counted();
        let begun = Instant::now();
        let read = work(self, &mut context)?;
        let seconds = begun.elapsed().as_secs_f64();
        let after = self.server.counted();
        Ok(Phase {
            seconds,
            index_seconds: 0.0,
            requests: after[0] - before[0],
            bytes: after[1] - before[1],
            read: read as f64,
        })
    }
}

fn random() -> u128 {
    let half = || u128::from(RandomState::new().build_hasher().finish());
    (half() << 64) | half()
}
