//! Enums whose variants have names.

/// Declares an enum whose variants are named in one case where they are stored, shown and read.
macro_rules! named_enum {
    ($(#[$meta:meta])* pub enum $name:ident: $case:tt { $($variants:tt)* }) => {
        #[derive(
            Debug,
            Clone,
            Copy,
            PartialEq,
            Eq,
            Hash,
            serde::Serialize,
            serde::Deserialize,
            strum::Display,
            strum::EnumString,
            strum::IntoStaticStr,
            strum::VariantArray,
        )]
        #[serde(rename_all = $case)]
        #[strum(serialize_all = $case)]
        $(#[$meta])*
        pub enum $name { $($variants)* }

        impl $name {
            /// Every variant, in order.
            pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

            /// Its name in the store, in APIs, in commands and in reports.
            pub fn name(self) -> &'static str {
                self.into()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{
        answer::FailureKind, api::Api, names::audience::Audience, source_kind::SourceKind,
        upstream_id::IdOrder,
    };

    /// These are in stores, in configuration and in APIs.
    #[test]
    fn names_stay() {
        let kinds = SourceKind::ALL.iter().map(|kind| kind.name());
        assert_eq!(kinds.collect::<Vec<_>>(), ["polled", "tracked", "threads"]);
        let audiences = Audience::ALL.iter().map(|audience| audience.name());
        assert_eq!(
            audiences.collect::<Vec<_>>(),
            ["private", "members", "public"]
        );
        let apis = Api::ALL.iter().map(|api| api.name());
        assert_eq!(apis.collect::<Vec<_>>(), ["mastodon", "x", "twitter"]);
        let orders = IdOrder::ALL.iter().map(|order| order.name());
        assert_eq!(
            orders.collect::<Vec<_>>(),
            ["numeric", "length-then-text", "text"]
        );
        assert_eq!(FailureKind::TimedOut.to_string(), "timed_out");
        // Stored settings have an underscore.
        let stored = serde_json::to_string(IdOrder::ALL).unwrap();
        assert_eq!(stored, r#"["numeric","length_then_text","text"]"#);
    }
}
