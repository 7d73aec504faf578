use alloc::vec::Vec;

use crate::decoded::Decoded;
use crate::hex;
use crate::layout::Layout;

/// `text` as an ID of each layout that it may be of, in the order of [`Layout::ALL`].
///
/// Text is read in each layout's own form, or in hexadecimal after `0x`: up to 64 bits for the
/// 64-bit layouts, more for the others. Which reading is plausible is a matter of its time.
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
    /// Whether the ID may be older than its layout, or backdated: its time is before the layout
    /// came into use.
    ///
    /// Sequential IDs from before a layout cannot be distinguished from the layout's own by their
    /// form. They carry no time, and read as times of before the layout came into use.
    pub fn may_predate_layout(&self) -> bool {
        self.time_ms < self.layout.in_use_since_ms()
    }
}

fn width_of(raw: u128) -> u8 {
    if raw > u128::from(u64::MAX) { 128 } else { 64 }
}
