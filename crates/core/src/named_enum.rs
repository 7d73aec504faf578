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
