use alloc::vec::Vec;

use crate::decoded::Decoded;
use crate::hex;
use crate::layout::Layout;

/// Decodes `text` by each layout to which it may belong, in the order of [`Layout::ALL`].
///
/// Text is read in each layout's own form, or in hexadecimal after `0x`: up to 64 bits for the
/// 64-bit layouts, more for the others. The time of a reading shows its plausibility.
pub fn candidates(text: &str) -> Vec<Decoded> {
    let hexadecimal = hex::strip_prefix(text).map(|_| hex::parse(text).ok());
    Layout::ALL
        .iter()
        .filter_map(|layout| {
            let raw = match hexadecimal {
                Some(_) if layout.prints_as_hexadecimal(text) => layout.parse(text).ok()?,
                Some(raw) => raw.filter(|&raw| width_of(raw) == layout.width_bits())?,
                None => layout.parse(text).ok()?,
            };
            layout.contains(raw).then(|| layout.decode(raw))
        })
        .collect()
}

impl Decoded {
    /// True if the ID may be older than its layout, or backdated, because its time is before the
    /// layout came into use.
    ///
    /// The form of an old sequential ID does not distinguish it from an ID of the layout.
    /// Sequential IDs contain no time, and read as times before the layout came into use.
    pub fn may_predate_layout(&self) -> bool {
        self.time_ms < self.layout.in_use_since_ms()
    }
}

fn width_of(raw: u128) -> u8 {
    if raw > u128::from(u64::MAX) { 128 } else { 64 }
}
