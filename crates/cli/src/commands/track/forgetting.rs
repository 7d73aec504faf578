//! `track --forget`: posts that are asked for no more.

use driftline_core::tracking::ForgottenPosts;
use driftline_server::admin::ForgetTracked;

use super::ids::{CHUNK, IdLines};
use crate::{
    config::Config,
    consent::Consent,
    error::CliError,
    output,
    store_access::{Missing, StoreAccess, with},
};

/// Forgets the posts of a file of IDs, or all of the server's.
///
/// # Errors
/// [`CliError`] as the process ends.
pub async fn run(
    instance: &str,
    ids: Option<&str>,
    consent: Consent,
    config: &Config,
    json: bool,
) -> Result<(), CliError> {
    let chunks = match ids {
        Some(name) => chunks(name)?.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let forgotten = with(config, Missing::Refuse, async |access| {
        if !consent.is_given() {
            let plan = execute(access, instance, &chunks, true).await?;
            if plan.lookups + plan.posts == 0 {
                return Ok(plan);
            }
            consent.ask(&asked(&plan))?;
        }
        execute(access, instance, &chunks, false).await
    })
    .await?;
    output::reply(json, &forgotten, shown)
}

/// A file's IDs, in portions that one write takes.
fn chunks(name: &str) -> Result<Vec<Vec<String>>, CliError> {
    let mut lines = IdLines::open(name, false)?;
    let mut ids = Vec::new();
    while let Some((_, id)) = lines.next()? {
        if !id.is_empty() {
            ids.push(id);
        }
    }
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Err(CliError::usage(format!(
            "{name} has no IDs; leave --ids out to forget all tracked posts of the server"
        )));
    }
    Ok(ids.chunks(CHUNK).map(<[String]>::to_vec).collect())
}

async fn execute(
    access: &mut StoreAccess,
    instance: &str,
    chunks: &[Option<Vec<String>>],
    is_plan: bool,
) -> Result<ForgottenPosts, CliError> {
    let mut all = ForgottenPosts::default();
    for ids in chunks {
        let request = ForgetTracked {
            instance: instance.to_owned(),
            ids: ids.clone(),
            is_plan,
        };
        let part = access.execute(request).await?;
        all.source = part.source;
        all.lookups += part.lookups;
        all.posts += part.posts;
        all.kept += part.kept;
        all.in_work += part.in_work;
    }
    Ok(all)
}

fn asked(plan: &ForgottenPosts) -> String {
    format!(
        "of {}, {} IDs without a post are looked up no more, and {} stored posts are kept fresh no more; they stay stored",
        plan.source, plan.lookups, plan.posts
    )
}

fn shown(of: &ForgottenPosts) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {} IDs are looked up no more, {} stored posts are kept fresh no more",
        of.source, of.lookups, of.posts
    )];
    if of.kept > 0 {
        lines.push(format!(
            "{} posts are kept fresh for another source",
            of.kept
        ));
    }
    if of.in_work > 0 {
        lines.push(format!(
            "{} posts are being looked up by another process and stay; run it again in a minute",
            of.in_work
        ));
    }
    lines
}
