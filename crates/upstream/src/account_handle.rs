//! Accounts by the names that people write.

use std::{fmt, str::FromStr};

/// An account's name: `@user@host`, or `@user` for one of the server's own. The first `@` may be left
/// out where there is a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountHandle {
    user: String,
    host: Option<String>,
}

impl AccountHandle {
    /// The handle in the text `account:HANDLE` of a timeline; `None` if the text is no such one, as
    /// `account:ID` is none.
    ///
    /// # Errors
    /// [`HandleError`] if it has an `@` and is no name.
    pub fn of_timeline(text: &str) -> Option<Result<Self, HandleError>> {
        let handle = text.strip_prefix("account:")?;
        handle.contains('@').then(|| handle.parse())
    }

    /// The name on its host.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The host, with its port if it has one; `None` of a server's own.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Whether a server calls an account so, in its member `acct`. Names of hosts and users have no
    /// case.
    pub(crate) fn is(&self, acct: &str) -> bool {
        self.to_string().eq_ignore_ascii_case(acct)
    }
}

impl FromStr for AccountHandle {
    type Err = HandleError;

    fn from_str(text: &str) -> Result<Self, HandleError> {
        let bare = text.strip_prefix('@').unwrap_or(text);
        let (user, host) = match bare.split_once('@') {
            Some((user, host)) => (user, Some(host)),
            None => (bare, None),
        };
        let is_word = |text: &str, signs: &str| {
            let is_known = |c: char| c.is_alphanumeric() || signs.contains(c);
            text.chars().all(is_known) && text.contains(char::is_alphanumeric)
        };
        if text.len() <= MAX_BYTES
            && is_word(user, "_.-")
            && host.is_none_or(|host| is_word(host, ".-:"))
        {
            return Ok(Self {
                user: user.to_owned(),
                host: host.map(str::to_owned),
            });
        }
        Err(HandleError(text.chars().take(MAX_BYTES).collect()))
    }
}

/// As servers write it, without the first `@`.
impl fmt::Display for AccountHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{}@{host}", self.user),
            None => f.write_str(&self.user),
        }
    }
}

/// A text that is no account's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no account's name; write account:@user, account:@user@host, or account:ID")]
pub struct HandleError(String);

/// No server takes longer ones.
const MAX_BYTES: usize = 320;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_told_from_ids() {
        for (text, handle) in [
            ("account:@ada", "ada"),
            ("account:@ada@far.example", "ada@far.example"),
            (
                "account:Ada_1.b-c@far.example:8443",
                "Ada_1.b-c@far.example:8443",
            ),
            ("account:@猫@例え.テスト", "猫@例え.テスト"),
        ] {
            let parsed = AccountHandle::of_timeline(text).expect(text).expect(text);
            assert_eq!(parsed.to_string(), handle);
        }
        for text in [
            "account:5",
            "account:01F8MH",
            "list:@ada",
            "tag:a@b",
            "home",
            "@ada",
        ] {
            assert_eq!(AccountHandle::of_timeline(text), None, "{text}");
        }
        for text in [
            "@",
            "@@",
            "@ada@",
            "ada@",
            "@@far.example",
            "@a b",
            "a@b@c",
            "a/b@c",
            "@a\0",
        ] {
            let parsed = AccountHandle::of_timeline(&format!("account:{text}"));
            assert!(matches!(parsed, Some(Err(_))), "{text:?}");
        }
    }
}
