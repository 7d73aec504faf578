//! The `Link` header of a page.

use driftline_core::upstream_id::UpstreamId;
use url::Url;

/// Where the pages next to a page begin.
///
/// Nothing here decides what to ask for next: the timeline machine does that
/// from the posts themselves, because some servers leave the header out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// `max_id` of `rel="next"`: the page of older posts.
    pub next_max_id: Option<UpstreamId>,
    /// `min_id` of `rel="prev"`: the page of newer posts.
    pub prev_min_id: Option<UpstreamId>,
}

/// Reads a `Link` header; what cannot be read is left out.
pub fn parse(header: &str) -> Links {
    let mut links = Links::default();
    // An address may hold commas and semicolons, so only `<` begins a link.
    for link in header.split('<').skip(1) {
        let Some((address, parameters)) = link.split_once('>') else {
            continue;
        };
        for relation in relations(parameters) {
            match relation {
                "next" => links.next_max_id = query_value(address, "max_id"),
                "prev" => links.prev_min_id = query_value(address, "min_id"),
                _ => {}
            }
        }
    }
    links
}

fn relations(parameters: &str) -> impl Iterator<Item = &str> {
    parameters
        .split([';', ','])
        .filter_map(|parameter| parameter.split_once('='))
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("rel"))
        .flat_map(|(_, value)| value.trim().trim_matches('"').split_ascii_whitespace())
}

fn query_value(address: &str, name: &str) -> Option<UpstreamId> {
    let base = Url::parse("http://localhost").ok()?;
    let url = base.join(address).ok()?;
    url.query_pairs()
        .find(|(key, value)| key == name && !value.is_empty())
        .map(|(_, value)| UpstreamId::new(value.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mastodons_own_header() {
        let links = parse(
            "<https://example.social/api/v1/timelines/home?limit=2&max_id=115>; rel=\"next\", \
             <https://example.social/api/v1/timelines/home?limit=2&min_id=117>; rel=\"prev\"",
        );
        assert_eq!(links.next_max_id, Some("115".into()));
        assert_eq!(links.prev_min_id, Some("117".into()));
    }

    #[test]
    fn odd_headers() {
        let commas = parse("<https://e.x/a?types[]=a,b;c&max_id=1,2>;title=x; rel=next");
        assert_eq!(commas.next_max_id, Some("1,2".into()));
        let relative = parse("</api?min_id=01H%2F>; REL=\"first prev\"");
        assert_eq!(relative.prev_min_id, Some("01H/".into()));
        for nothing in [
            "",
            "<",
            "<>",
            "<https://e.x/?max_id=1>",
            "<https://e.x/?max_id=>; rel=\"next\"",
            "<https://e.x/?since_id=1>; rel=\"prev\"",
            "https://e.x/?max_id=1; rel=next",
        ] {
            assert_eq!(parse(nothing), Links::default(), "{nothing}");
        }
    }
}
