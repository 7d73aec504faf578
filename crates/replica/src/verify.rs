use std::time::Duration;

use driftline_core::sync::{ACCOUNT_LIBRARY, LibraryDigest, LibraryRequest};
use serde::Serialize;

use crate::{
    Replica, ReplicaError,
    client::Client,
    entry_row, object_row, replica_row,
    subscription_row::{self, SubscriptionRow},
    sync::{Direction, SyncContext},
};

/// The outcome of a comparison of a replica with its server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// True if all libraries are equal.
    pub is_equal: bool,
    /// The libraries: the account's own, and those of the subscriptions by the sources' names.
    pub libraries: Vec<VerifiedLibrary>,
}

/// The outcome of a comparison of a library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifiedLibrary {
    /// The library.
    pub library: String,
    /// The source's name; `None` for the account's own library.
    pub source: Option<String>,
    /// True if the server's versions of all objects are here. Of a source's post, the place, the time of its last edit and its
    /// visibility are compared.
    pub is_equal: bool,
    /// True if the library changed at each try, so that nothing is known of it. `is_equal` is false then.
    pub is_moving: bool,
    /// The number of objects here. Changes that were not sent do not count.
    pub here: u64,
    /// The number of objects on the server.
    pub there: u64,
}

impl Replica {
    /// Fetches the changes of the server's libraries and compares them with the replica by digests. A source that the account may
    /// not read any more is left out.
    ///
    /// # Errors
    /// The same as those of [`Replica::sync`].
    pub async fn verify(
        &self,
        client: &Client,
        context: &mut SyncContext<'_>,
    ) -> Result<Verified, ReplicaError> {
        let mut libraries = vec![self.verify_account(client, context).await?];
        let subscriptions = self.read(subscription_row::list).await?;
        for row in subscriptions.into_iter().filter(|row| !row.is_gone) {
            libraries.extend(self.verify_source(client, context, &row).await?);
        }
        Ok(Verified {
            is_equal: libraries.iter().all(|of| of.is_equal),
            libraries,
        })
    }

    /// Makes the next synchronization of the libraries that differ a full one. Changes of this device stay.
    ///
    /// # Errors
    /// [`ReplicaError::Locked`] if another process syncs the replica for more than 5 s; [`ReplicaError::Db`] if the database
    /// fails.
    pub async fn begin_again(&self, verified: &Verified) -> Result<(), ReplicaError> {
        let _lock = self.lock().await?;
        let libraries = verified.libraries.clone();
        self.write(move |tx| {
            for of in libraries.iter().filter(|of| !of.is_equal && !of.is_moving) {
                match of.library.as_str() {
                    ACCOUNT_LIBRARY => {
                        replica_row::update(tx, |row| {
                            let progress = &mut row.progress;
                            progress.cursor = None;
                            // Of a synchronization of another process, which was interrupted.
                            progress.sweep = progress.paging.take().or(progress.sweep);
                        })?;
                    }
                    source => subscription_row::begin_again(tx, source)?,
                }
            }
            Ok(())
        })
        .await
    }

    async fn verify_account(
        &self,
        client: &Client,
        context: &mut SyncContext<'_>,
    ) -> Result<VerifiedLibrary, ReplicaError> {
        let request = LibraryRequest {
            library: ACCOUNT_LIBRARY.to_owned(),
            filter: None,
            cursor: None,
        };
        let mut verified = VerifiedLibrary::moving(ACCOUNT_LIBRARY, None);
        for attempt in 0..MAX_TRIES {
            // A replica that has everything needs one request.
            if attempt > 0 {
                self.sync(client, context, Direction::Pull).await?;
            }
            let there = client.digest(&request, context.random).await?;
            let (progress, here) = self
                .read(|tx| {
                    let progress = replica_row::require(tx)?.progress;
                    Ok((progress, object_row::digest(tx)?))
                })
                .await?;
            (verified.here, verified.there) = (here.count(), there.count);
            // Another process may be in a full sync.
            if progress.is_complete() && progress.cursor.as_ref() == Some(&there.cursor) {
                verified.is_equal = here.count() == there.count && here.text() == there.digest;
                verified.is_moving = false;
                break;
            }
        }
        Ok(verified)
    }

    /// Compares the copy of a source with the library as it is; `None` if the account may not read it any more. Its cursors are
    /// not compared, since they would reveal posts that the account may not see: if the digests differ twice and nothing comes
    /// between, the copies differ. Once is not enough, since a deleted post is hidden a moment before its tombstone is in the
    /// library.
    async fn verify_source(
        &self,
        client: &Client,
        context: &mut SyncContext<'_>,
        row: &SubscriptionRow,
    ) -> Result<Option<VerifiedLibrary>, ReplicaError> {
        let library = row.progress.library.as_str();
        let mut verified = VerifiedLibrary::moving(library, Some(row.source.clone()));
        let mut has_differed = false;
        for _ in 0..MAX_TRIES {
            let there = match self.digest_there(client, context, row).await {
                Err(error @ ReplicaError::NoSync { status: 404, .. }) => {
                    self.sync(client, context, Direction::Pull).await?;
                    let library = library.to_owned();
                    let row = self.read(move |tx| subscription_row::get(tx, &library));
                    return match row.await?.is_some_and(|row| !row.is_gone) {
                        true => Err(error),
                        false => Ok(None),
                    };
                }
                there => there?,
            };
            let here = self.digest_here(library).await?;
            (verified.here, verified.there) = (here.count(), there.count());
            verified.is_equal = here == there;
            if !verified.is_equal {
                self.sync(client, context, Direction::Pull).await?;
                let has_news = self.digest_here(library).await? != here;
                if has_news || !has_differed {
                    has_differed = !has_news;
                    // News is compared at once, before more comes.
                    if !has_news {
                        tokio::time::sleep(PAUSE).await;
                    }
                    continue;
                }
            }
            verified.is_moving = false;
            break;
        }
        Ok(Some(verified))
    }

    /// The digest of the copy of a source.
    async fn digest_here(&self, library: &str) -> Result<LibraryDigest, ReplicaError> {
        let library = library.to_owned();
        self.read(move |tx| entry_row::digest(tx, &library)).await
    }

    /// The sum of the server's digests of the parts of a source.
    async fn digest_there(
        &self,
        client: &Client,
        context: &mut SyncContext<'_>,
        row: &SubscriptionRow,
    ) -> Result<LibraryDigest, ReplicaError> {
        let malformed = |cause: &str| ReplicaError::Malformed {
            server: client.server().to_string(),
            cause: cause.to_owned(),
        };
        let mut request = LibraryRequest {
            library: row.progress.library.clone(),
            filter: row.progress.filter.clone(),
            cursor: None,
        };
        let mut sum = LibraryDigest::default();
        let mut restarts = 0;
        for _ in 0..MAX_PARTS {
            let answer = match client.digest(&request, context.random).await {
                // The server does not know its cursor any more: it was restored, or begins this library again.
                Err(ReplicaError::Rejected { status: 422, .. })
                    if request.cursor.is_some() && restarts < MAX_RESTARTS =>
                {
                    restarts += 1;
                    request.cursor = None;
                    sum = LibraryDigest::default();
                    continue;
                }
                answer => answer?,
            };
            let part = LibraryDigest::of_answer(&answer);
            sum.add_part(part.ok_or_else(|| malformed("a digest is not valid"))?);
            let checked = self.binding().check(&answer.server, &answer.account);
            checked.map_err(|stop| ReplicaError::stopped(&self.url, stop))?;
            if !answer.more {
                return Ok(sum);
            }
            request.cursor = Some(answer.cursor);
        }
        Err(malformed("a digest has too many parts"))
    }
}

impl VerifiedLibrary {
    /// The outcome before the first comparison that counts.
    fn moving(library: &str, source: Option<String>) -> Self {
        Self {
            library: library.to_owned(),
            source,
            is_equal: false,
            is_moving: true,
            here: 0,
            there: 0,
        }
    }
}

/// The time between two comparisons.
const PAUSE: Duration = Duration::from_secs(1);
/// The number of tries while others change a library.
const MAX_TRIES: u32 = 5;
/// The number of times that a digest is begun again.
const MAX_RESTARTS: u32 = 3;
/// The number of parts of a digest, each of which takes the server half a second.
const MAX_PARTS: u32 = 10_000;
