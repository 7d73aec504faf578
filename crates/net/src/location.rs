//! Addresses in messages.

use url::Url;

/// The address of a request for messages, without query, user and fragment.
pub fn location(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_location_holds_neither_query_nor_user() {
        let url = Url::parse("https://me:pw@a.example:8443/api?access_token=x#y").expect("a URL");
        assert_eq!(location(&url), "https://a.example:8443/api");
    }
}
