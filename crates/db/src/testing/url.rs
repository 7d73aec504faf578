//! PostgreSQL URLs of tests, in parts.

use std::fmt::Display;

/// The parts of a URL, as written. Not `Debug`, because they may contain a password.
#[derive(Clone, Copy)]
pub(super) struct UrlParts<'a> {
    scheme: &'a str,
    /// `name` or `name:password`, or empty.
    user: &'a str,
    address: &'a str,
    database: &'a str,
    parameters: &'a str,
}

impl<'a> UrlParts<'a> {
    /// Parses `postgres://[user[:password]@]host[:port]/database[?parameters]`; `None` for other
    /// forms.
    pub(super) fn parse(url: &'a str) -> Option<UrlParts<'a>> {
        let (scheme, rest) = url.split_once("://")?;
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        // Separators are percent-encoded within the parts.
        let (server, database) = rest.split_once('/')?;
        let (user, address) = server.rsplit_once('@').unwrap_or(("", server));
        let is_whole = !address.is_empty() && !database.is_empty() && !database.contains('/');
        let is_postgres = matches!(scheme, "postgres" | "postgresql");
        (is_postgres && is_whole && !user.contains('@')).then_some(UrlParts {
            scheme,
            user,
            address,
            database,
            parameters,
        })
    }

    /// The URL of another database of the same server.
    pub(super) fn with_database(&self, name: &str) -> String {
        self.url(&self.address, name, self.parameters)
    }

    /// The URL of the same database at another address.
    pub(super) fn with_address(&self, address: impl Display) -> String {
        self.url(&address, self.database, self.parameters)
    }

    /// The URL with further parameters, of the form `key=value&key=value`.
    pub(super) fn with_parameters(&self, further: &str) -> String {
        let between = match self.parameters.is_empty() || further.is_empty() {
            true => "",
            false => "&",
        };
        let parameters = format!("{}{between}{further}", self.parameters);
        self.url(&self.address, self.database, &parameters)
    }

    /// The host without the brackets of an IPv6 address, and the port.
    pub(super) fn host_and_port(&self) -> (&'a str, &'a str) {
        let (host, port) = match self.address.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (self.address, DEFAULT_PORT),
        };
        (host.trim_matches(['[', ']']), port)
    }

    /// The name of the user and the password, decoded.
    pub(super) fn user(&self) -> (String, Option<String>) {
        let decoded = |text| {
            percent_encoding::percent_decode_str(text)
                .decode_utf8_lossy()
                .into_owned()
        };
        match self.user.split_once(':') {
            Some((name, password)) => (decoded(name), Some(decoded(password))),
            None => (decoded(self.user), None),
        }
    }

    pub(super) fn database(&self) -> &'a str {
        self.database
    }

    /// A parameter's value, as written.
    pub(super) fn parameter(&self, key: &str) -> Option<&'a str> {
        let mut pairs = self.parameters.split('&');
        pairs.find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
    }

    fn url(&self, address: &dyn Display, database: &str, parameters: &str) -> String {
        let UrlParts { scheme, user, .. } = self;
        let at = if user.is_empty() { "" } else { "@" };
        let question = if parameters.is_empty() { "" } else { "?" };
        format!("{scheme}://{user}{at}{address}/{database}{question}{parameters}")
    }
}

/// A PostgreSQL URL with further parameters, of the form `key=value&key=value`.
///
/// # Panics
/// If `url` does not have the form
/// `postgres://[user[:password]@]host[:port]/database[?parameters]`.
pub fn with_parameters(url: &str, further: &str) -> String {
    parts(url).with_parameters(further)
}

/// The parts of a URL that was checked before.
pub(super) fn parts(url: &str) -> UrlParts<'_> {
    // Without the URL, because it may contain a password.
    UrlParts::parse(url).expect("a URL like postgres://user@host:port/database")
}

const DEFAULT_PORT: &str = "5432";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_put_together_again() {
        for url in [
            "postgres://h/d",
            "postgres://me@127.0.0.1:5601/d",
            "postgresql://me:p%40ss:w%2Frd@[::1]:5432/d?sslmode=disable&options=-c%20a%3Db",
        ] {
            let parts = parts(url);
            assert_eq!(parts.with_database(parts.database()), url);
            assert_eq!(parts.with_parameters(""), url);
            let other = parts.with_database("other");
            assert_eq!(other, url.replacen("/d", "/other", 1));
        }
    }

    #[test]
    fn parts_are_told_apart() {
        let parts = parts("postgres://me:p%40ss@[::1]:77/d?sslmode=require&a=b");
        assert_eq!(parts.host_and_port(), ("::1", "77"));
        assert_eq!(parts.user(), ("me".into(), Some("p@ss".into())));
        assert_eq!(parts.parameter("sslmode"), Some("require"));
        assert_eq!(parts.parameter("ssl"), None);
        assert_eq!(
            parts.with_address("127.0.0.1:5"),
            "postgres://me:p%40ss@127.0.0.1:5/d?sslmode=require&a=b"
        );
        assert!(parts.with_parameters("c=d").ends_with("&a=b&c=d"));
        assert_eq!(super::parts("postgres://h/d").host_and_port().1, "5432");
        assert_eq!(super::parts("postgres://[::1]/d").host_and_port().0, "::1");
        assert_eq!(
            with_parameters("postgres://h/d", "a=b"),
            "postgres://h/d?a=b"
        );
    }

    #[test]
    fn other_forms_are_none() {
        for text in [
            "host=localhost dbname=d",
            "postgres://h",
            "postgres://h/",
            "postgres:///d",
            "postgres://me:pa/ss@h/d",
            "postgres://me:p@ss@h/d",
            "mysql://h/d",
        ] {
            assert!(UrlParts::parse(text).is_none(), "{text}");
        }
    }
}
