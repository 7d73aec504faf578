//! The command that lists how the counts of posts grew.

use driftline_runtime::CommandError;
use driftline_store::{
    LocalId, StoreError, known_instances, refresh::growth_histories, seen_since_each,
};

use super::{GrowthPage, Host, ListGrowth};

/// A page of posts of the given instance, or of the only one.
pub(super) async fn page(host: &Host, request: ListGrowth) -> Result<GrowthPage, CommandError> {
    let ListGrowth {
        instance,
        since_ms,
        after,
        limit,
    } = request;
    let instance = instance.as_deref();
    let viewer = host.viewer;
    let all = host
        .store
        .read(move |tx| known_instances::known_to(tx, viewer))
        .await?;
    let is_it = |origin: &str| {
        let host = origin.split_once("://").map_or("", |(_, host)| host);
        instance.is_none_or(|name| name == origin || name == host)
    };
    let found: Vec<_> = all.iter().filter(|known| is_it(&known.origin)).collect();
    let [instance] = found.as_slice() else {
        let names: Vec<&str> = all.iter().map(|known| known.origin.as_str()).collect();
        let names = names.join(", ");
        return Err(CommandError::usage(match instance {
            _ if all.is_empty() => {
                "the store knows no server yet; `driftline source add URL` adds a timeline of one"
                    .to_owned()
            }
            Some(name) if found.is_empty() => {
                format!(
                    "the store knows no server {name:?}; name one of these with --instance: {names}"
                )
            }
            _ => format!("name one server with --instance; the store knows {names}"),
        }));
    };
    let id = instance.id;
    let viewer = host.viewer;
    let read = host.store.read(move |tx| {
        let mut rows = growth_histories(tx, id, since_ms, after, limit)?;
        let next = rows.last().map(|grown| grown.post);
        let posts: Vec<LocalId> = rows.iter().map(|grown| grown.post).collect();
        let seen = seen_since_each(tx, id, &posts, viewer)?;
        rows.retain_mut(|grown| {
            let Some(since_ms) = seen.get(&grown.post) else {
                return false;
            };
            grown.cut(*since_ms);
            true
        });
        Ok::<_, StoreError>((rows, next))
    });
    let (rows, next) = read.await?;
    Ok(GrowthPage {
        instance: instance.origin.clone(),
        rows,
        next,
    })
}
