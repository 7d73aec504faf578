//! Requests that a command sends, counted as those of sessions are.

use driftline_core::answer::{AnswerHeaders, Failure};
use driftline_mirror::quotas::{Permit, Quota};
use driftline_store::StoreError;

/// Sends a request for up to `posts` posts, which counts against a quota if there is one. `used` says how
/// many posts an answer has, and which headers. Returns `None` if the quota is used up.
///
/// # Errors
/// [`StoreError`] if the quota cannot be read or kept.
pub(super) async fn counted<T>(
    quota: Option<Quota>,
    posts: u32,
    request: impl Future<Output = Result<T, Failure>>,
    used: impl FnOnce(&T) -> (u32, &AnswerHeaders),
) -> Result<Option<Result<T, Failure>>, StoreError> {
    let Some(quota) = quota else {
        return Ok(Some(request.await));
    };
    let Permit::Sent(charge) = quota.take(posts).await? else {
        return Ok(None);
    };
    let answer = request.await;
    match &answer {
        Ok(answer) => {
            let (read, headers) = used(answer);
            quota.answered(charge, read, headers).await?;
        }
        Err(failure) => quota.failed(charge, failure).await?,
    }
    Ok(Some(answer))
}
