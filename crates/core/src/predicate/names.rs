use super::folding::Folding;
use crate::text::without_nul;

/// Declares a text that has one normal form.
macro_rules! normal_text {
    ($(#[$meta:meta])* $name:ident, $normal:expr) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Puts a text into its normal form; `None` if it is invalid.
            pub fn new(text: &str) -> Option<Self> {
                let normal: fn(&str) -> Option<String> = $normal;
                normal(&without_nul(text)).map(Self)
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}

normal_text! {
    /// The name of an account with its host, `name@host`, in lower case as in
    /// [`AcctKey`](crate::names::acct::AcctKey).
    Acct, |text| {
        let acct = text.strip_prefix('@').unwrap_or(text);
        let (name, host) = acct.split_once('@')?;
        let is_valid = !name.is_empty() && !host.is_empty() && !host.contains('@');
        (is_valid && !acct.contains('#')).then(|| acct.to_ascii_lowercase())
    }
}

normal_text! {
    /// The host of an instance, with its port if that is not the default, in lower case. An
    /// instance's ID is not a host.
    Host, |text| {
        let host = text.split_once("://").map_or(text, |(_, host)| host);
        let host = host.trim_end_matches('/');
        let is_number = host.bytes().all(|byte| byte.is_ascii_digit());
        (!is_number && !host.contains('/')).then(|| host.to_ascii_lowercase())
    }
}

normal_text! {
    /// The name of a hashtag, without its `#`.
    Tag, |text| {
        let name = text.trim_start_matches(['#', '＃']);
        (!name.is_empty()).then(|| name.to_owned())
    }
}

normal_text! {
    /// The code of a language, in lower case.
    Language, |text| (!text.is_empty()).then(|| text.to_ascii_lowercase())
}

normal_text! {
    /// The name of a source.
    SourceName, |text| (!text.is_empty()).then(|| text.to_owned())
}

impl Tag {
    /// Returns the form in which hashtags are compared: case and width make no difference.
    pub fn key(&self) -> String {
        Self::key_for(&self.0)
    }

    /// Returns the form in which a hashtag with this name is compared.
    pub fn key_for(name: &str) -> String {
        Folding::Case.fold(name)
    }
}
