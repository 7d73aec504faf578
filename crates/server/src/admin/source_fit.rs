//! Whether what a source is given can work with its server.

use driftline_core::{
    api::Api,
    timeline::{Settings, Streaming},
};
use driftline_runtime::CommandError;
use driftline_upstream::Timeline;

/// Refuses what never works: a timeline that the API does not have or shows to nobody without a token,
/// and a stream that is not there.
pub(super) fn check_fit(
    api: Api,
    timeline: &Timeline,
    settings: &Settings,
    has_token: bool,
) -> Result<(), CommandError> {
    timeline.check_for(api).map_err(CommandError::usage)?;
    if !has_token && (timeline.needs_token() || api != Api::Mastodon) {
        return Err(CommandError::usage(format!(
            "the timeline {timeline} needs a token: give --token-env or --token-file, over HTTP `token`"
        )));
    }
    check_stream(api, timeline, settings)
}

/// Refuses a stream that is not there.
pub(super) fn check_stream(
    api: Api,
    timeline: &Timeline,
    settings: &Settings,
) -> Result<(), CommandError> {
    let is_asked_for = matches!(settings.stream, Streaming::Sse | Streaming::WebSocket);
    if is_asked_for && (api != Api::Mastodon || !timeline.has_stream()) {
        return Err(CommandError::usage(format!(
            "the timeline {timeline} of a server that speaks {api} has no stream; write --stream off, over HTTP `\"stream\": \"off\"`, or leave it out"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(api: Api, timeline: &str, stream: Streaming, has_token: bool) -> bool {
        let settings = Settings {
            stream,
            ..Settings::default()
        };
        let timeline: Timeline = timeline.parse().expect("a timeline");
        check_fit(api, &timeline, &settings, has_token).is_ok()
    }

    #[test]
    fn what_never_works_is_refused() {
        use Streaming::{Auto, Off, Sse, WebSocket};
        for (api, timeline, stream, has_token, expected) in [
            (Api::Mastodon, "public", Auto, false, true),
            (Api::Mastodon, "public", WebSocket, false, true),
            (Api::Mastodon, "home", Auto, false, false),
            (Api::Mastodon, "home", Sse, true, true),
            (Api::Mastodon, "list:5", Auto, false, false),
            (Api::Mastodon, "mentions", Auto, false, false),
            (Api::Mastodon, "mentions", Sse, true, false),
            (Api::Mastodon, "account:5", Sse, false, false),
            (Api::Mastodon, "account:5", Off, false, true),
            (Api::X, "account:5", Auto, false, false),
            (Api::X, "account:5", Auto, true, true),
            (Api::X, "account:5", Sse, true, false),
            (Api::Twitter, "public", Auto, true, false),
        ] {
            let fits = fits(api, timeline, stream, has_token);
            assert_eq!(fits, expected, "{api} {timeline} {stream:?} {has_token}");
        }
    }
}
