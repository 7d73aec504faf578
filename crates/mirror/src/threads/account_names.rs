//! Accounts that are fetched by their names.

use driftline_core::{answer::Failure, names::acct::AcctKey};
use driftline_upstream::{AccountHandle, Upstream};

use super::{
    Answered, Duration, Fetched, Source, StoreError, ThreadRequest, Threads, Viewer, Wanted,
};

impl Threads {
    /// Fetches the account of a name with a host (`user@host`) for a viewer, unless that was tried a short while ago;
    /// waits for it for at most `wait`. A source of the viewer's own is asked first, with its token, then the name's
    /// host, if a source that is for the world is there. Nothing is asked for whoever has no account.
    pub async fn fetch_account(&self, viewer: Viewer, name: &str, wait: Duration) -> Fetched {
        match self.requests_for(viewer, name).await {
            Ok(requests) => self.wait_for_first(viewer, requests, wait).await,
            Err(error) => {
                tracing::warn!(%error, "an account was not fetched: the store failed");
                Fetched::NotNow
            }
        }
    }

    /// Whom to ask for an account, by what the viewer sees alone.
    async fn requests_for(
        &self,
        viewer: Viewer,
        name: &str,
    ) -> Result<Vec<ThreadRequest>, StoreError> {
        // One account has one request, however its name is written.
        let name = name.to_ascii_lowercase();
        let handle = name.parse::<AccountHandle>().ok();
        let host = handle.as_ref().and_then(AccountHandle::host);
        let (Some(owner), Some(host), Some(handle)) = (viewer.owner(), host, &handle) else {
            return Ok(Vec::new());
        };
        let is_there = |source: &Source| host_of(&source.instance.origin) == host;
        let searched = Wanted::SearchAccount(handle.to_string());
        let looked_up = Some(Wanted::LookUpAccount(handle.to_string()));
        self.requests(viewer, owner, is_there, (searched, looked_up))
            .await
    }
}

impl Wanted {
    /// Asks the server of that origin for the account of a name: that one, and no other.
    pub(super) async fn ask_for_account(
        &self,
        client: &Upstream,
        name: &str,
        origin: &str,
    ) -> Result<Answered, Failure> {
        let Ok(handle) = name.parse::<AccountHandle>() else {
            return Ok(Answered::default());
        };
        let (found, headers) = match self {
            Wanted::LookUpAccount(_) => {
                let (found, headers) = client.look_up_account(handle.user()).await?;
                (found.into_iter().collect(), headers)
            }
            _ => client.search_accounts(&handle).await?,
        };
        let wanted = AcctKey::new(name, "");
        let is_it = |acct: &str| AcctKey::new(acct, origin) == wanted;
        let account = found.into_iter().find(|account| is_it(&account.acct));
        Ok(Answered {
            account,
            headers,
            ..Answered::default()
        })
    }
}

/// The host in the names of a server's accounts, with its port if it has one.
fn host_of(origin: &str) -> String {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    host.to_ascii_lowercase()
}
