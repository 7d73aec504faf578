//! `replica verify`: compares a replica with its server.

use clap::Args;
use driftline_replica::{Replica, ReplicaError, Retries, SyncContext, Verified, VerifiedLibrary};
use driftline_runtime::now_ms;

use super::round::{random, with_consent};
use crate::{
    consent::Consent,
    error::CliError,
    output,
    shown::{count, plain},
};

/// Fetches changes and compares the replica with the server's libraries by digests. Ends with status 3 if they differ, or one
/// changes all the time.
///
/// It compares the place, the time of the last edit and the visibility of sources' posts.
#[derive(Debug, Args)]
pub struct Verify {
    /// Fetch the libraries that differ as a whole again. Changes of this device stay.
    #[arg(long)]
    repair: bool,
    /// Agree to a mass deletion: do not ask before most of a library is removed here.
    #[arg(long)]
    yes: bool,
}

impl Verify {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, replica: &Replica, json: bool) -> Result<(), CliError> {
        let run = async |may_remove_many| self.verify(replica, may_remove_many).await;
        let verified = with_consent(Consent::of(self.yes), run).await?;
        output::reply(json, &verified, lines)?;
        let differs = |of: &VerifiedLibrary| !of.is_equal && !of.is_moving;
        let failure = match (verified.is_equal, self.repair) {
            (true, _) => return Ok(()),
            _ if !verified.libraries.iter().any(differs) => {
                "a library changed at each try; try again later"
            }
            (false, false) => {
                "the replica differs from the server; `driftline replica verify --repair` fetches what differs again"
            }
            (false, true) => {
                "the replica differs from the server, although what differed was fetched again"
            }
        };
        Err(CliError::Unsettled(failure.to_owned()))
    }

    async fn verify(
        &self,
        replica: &Replica,
        may_remove_many: bool,
    ) -> Result<Verified, ReplicaError> {
        let client = replica.client(Retries::few())?;
        let mut random = random;
        let mut context = SyncContext {
            may_remove_many,
            ..SyncContext::new(now_ms(), &mut random)
        };
        let verified = replica.verify(&client, &mut context).await?;
        if verified.is_equal || !self.repair {
            return Ok(verified);
        }
        replica.begin_again(&verified).await?;
        replica.verify(&client, &mut context).await
    }
}

fn lines(of: &Verified) -> Vec<String> {
    of.libraries.iter().map(line).collect()
}

fn line(of: &VerifiedLibrary) -> String {
    let (object, source) = match &of.source {
        None => ("object", String::new()),
        Some(name) => ("post", format!("source {}: ", plain(name))),
    };
    let here = count(of.here, object);
    match (of.is_equal, of.is_moving) {
        (true, _) => format!("{source}equal: {here}"),
        (false, true) => format!("{source}changed at each try: {here} here"),
        (false, false) => format!("{source}different: {here} here, {} on the server", of.there),
    }
}
