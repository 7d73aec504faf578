//! Posts that pages list twice.

use crate::{
    rng::{Rng, hash_text},
    status::Status,
};

/// Returns the number of places after which a page lists a post once more, if it does.
pub(super) fn repeat(status: &Status, share: f64) -> Option<usize> {
    let mut rng = Rng::stream(hash_text(status.id.as_str()), REPEATED);
    rng.happens(share).then(|| rng.between(0, 3) as usize)
}

const REPEATED: u64 = 13;
