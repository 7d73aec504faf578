use driftline_core::predicate::Predicate;

use crate::{
    Replica, ReplicaError, ServerUrl, Subscription, backoff::Random, client::Client, replica::ask,
    subscription_row, sync_predicate,
};

impl Client {
    /// Checks that the account may read sources with these names, and that the filter is valid, before a replica subscribes.
    ///
    /// # Errors
    /// [`ReplicaError::NoSource`] and [`ReplicaError::Query`] as those of [`Replica::subscribe`]; another [`ReplicaError`] if the
    /// server gives no good answer.
    pub async fn check_sources(
        &self,
        names: &[String],
        filter: Option<&str>,
        random: &mut Random<'_>,
    ) -> Result<(), ReplicaError> {
        parsed(filter, self.server())?;
        if !names.is_empty() {
            chosen(self, names, random).await?;
        }
        Ok(())
    }
}

impl Replica {
    /// Subscribes to the sources with these names, in addition to the present ones. The next sync copies their posts that match
    /// the filter, a predicate in its text form, or all of them without one, and removes others. Returns all subscriptions, by
    /// the sources' names.
    ///
    /// # Errors
    /// [`ReplicaError::NoSource`] if the account may read no source with one of the names; [`ReplicaError::Query`] if the filter
    /// is not valid, or has a term that a filter of a synced library must not have. Nothing is subscribed then. Another
    /// [`ReplicaError`] if the server gives no good answer, is another one or answers for another account, or the database fails.
    pub async fn subscribe(
        &self,
        client: &Client,
        names: &[String],
        filter: Option<&str>,
        random: &mut Random<'_>,
    ) -> Result<Vec<Subscription>, ReplicaError> {
        let filter = parsed(filter, &self.url)?;
        // The IDs of libraries are those of one server.
        let found = ask(client, random).await?;
        let checked = self.binding().check(&found.server, &found.account);
        checked.map_err(|stop| ReplicaError::stopped(&self.url, stop))?;
        let chosen = chosen(client, names, random).await?;
        self.write(move |tx| {
            for (library, source) in &chosen {
                // A source that was removed may have left its name to this one.
                for old in subscription_row::list(tx)? {
                    if old.is_gone && old.source == *source && old.progress.library != *library {
                        subscription_row::remove(tx, &old.progress.library)?;
                    }
                }
                subscription_row::add(tx, library, source, filter.as_ref())?;
            }
            subscription_row::counted(tx)
        })
        .await
    }

    /// Ends the subscription of a source, and removes its entries. Returns the other subscriptions, by the sources' names.
    ///
    /// # Errors
    /// [`ReplicaError::NotSubscribed`] if there is no subscription of this name; [`ReplicaError::Db`] if the database fails.
    pub async fn unsubscribe(&self, name: &str) -> Result<Vec<Subscription>, ReplicaError> {
        let name = name.to_owned();
        self.write(move |tx| {
            let rows = subscription_row::list(tx)?;
            if rows.iter().all(|row| row.source != name) {
                return Err(ReplicaError::NotSubscribed {
                    name: name.clone(),
                    known: in_words(rows.iter().map(|row| row.source.as_str())),
                });
            }
            for row in rows.iter().filter(|row| row.source == name) {
                subscription_row::remove(tx, &row.progress.library)?;
            }
            subscription_row::counted(tx)
        })
        .await
    }
}

/// The predicate of a filter in its text form.
fn parsed(filter: Option<&str>, server: &ServerUrl) -> Result<Option<Predicate>, ReplicaError> {
    let origin = server.origin();
    let filter = filter.map(|text| sync_predicate::parse(text, &origin, sync_predicate::FILTER));
    filter.transpose()
}

/// The libraries of the sources with these names, each with its name.
async fn chosen(
    client: &Client,
    names: &[String],
    random: &mut Random<'_>,
) -> Result<Vec<(String, String)>, ReplicaError> {
    let libraries = client.libraries(random).await?;
    let mut chosen = Vec::new();
    for name in names {
        let found = libraries.iter().find(|of| of.source.as_ref() == Some(name));
        let found = found.ok_or_else(|| ReplicaError::NoSource {
            server: client.server().to_string(),
            name: name.clone(),
            known: in_words(libraries.iter().filter_map(|of| of.source.as_deref())),
        })?;
        chosen.push((found.library.clone(), name.clone()));
    }
    Ok(chosen)
}

/// Names as a text.
pub(crate) fn in_words<'a>(names: impl Iterator<Item = &'a str>) -> String {
    match names.collect::<Vec<_>>().as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}
