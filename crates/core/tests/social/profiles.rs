//! The limits of a profile.

use driftline_core::social::{Profile, ProfileError, ProfileField};

fn field(name: &str, value: &str) -> ProfileField {
    ProfileField {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

fn with_fields(fields: &[ProfileField]) -> Profile {
    Profile {
        fields: fields.to_vec(),
        ..Profile::default()
    }
}

fn with_bio(bio: &str) -> Profile {
    Profile {
        bio: bio.to_owned(),
        ..Profile::default()
    }
}

#[test]
fn each_limit_is_kept() {
    let text = |length: usize| "字".repeat(length);
    let (good, long) = (text(255), text(256));
    for profile in [
        Profile::default(),
        with_bio(&text(1024)),
        with_bio("two\nlines"),
        with_fields(&vec![field(&good, &good); 4]),
    ] {
        assert_eq!(profile.check(), Ok(()));
    }
    for (profile, error) in [
        (with_bio(&text(1025)), ProfileError::LongBio),
        (
            with_bio(&format!("a{}", "\u{301}".repeat(16_384))),
            ProfileError::LongBio,
        ),
        (with_bio("\0"), ProfileError::BadCharacter('\0')),
        (
            with_fields(&vec![field("a", "b"); 5]),
            ProfileError::ManyFields,
        ),
        (with_fields(&[field(&long, "")]), ProfileError::LongField),
        (with_fields(&[field("", &long)]), ProfileError::LongField),
        (
            with_fields(&[field("a", "\u{202e}")]),
            ProfileError::BadCharacter('\u{202e}'),
        ),
    ] {
        assert_eq!(profile.check(), Err(error));
    }
}
