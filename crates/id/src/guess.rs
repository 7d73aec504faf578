use alloc::vec::Vec;
use core::fmt;

use crate::hex;
use crate::layout::Layout;

/// A layout that a text may be an ID of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guess {
    /// The layout.
    pub layout: Layout,
    /// The ID's value.
    pub raw: u128,
    /// The ID's time under that layout, in Unix ms.
    pub time_ms: i64,
    /// Set where the ID may be older than the layout.
    pub may_predate: Option<MayPredate>,
}

/// A remark that an ID may be older than its layout, and its time then meaningless.
///
/// Sequential IDs from before a layout cannot be distinguished from the layout's own by their form;
/// they read as times of before the layout came into use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MayPredate {
    /// The layout's name.
    pub layout: &'static str,
    /// The time that the ID seems to have, in Unix ms.
    pub time_ms: i64,
    /// Since when the layout has been in use, in Unix ms.
    pub in_use_since_ms: i64,
}

/// The layouts that `text` may be an ID of, in the order of [`Layout::ALL`].
///
/// Text is read in each layout's own form, or in hexadecimal after `0x`: up to 64 bits for the
/// 64-bit layouts, more for the others. Which guess is plausible is a matter of its time.
pub fn candidates(text: &str) -> Vec<Guess> {
    let hexadecimal = hex::strip_prefix(text).map(|_| hex::parse(text).ok());
    Layout::ALL
        .iter()
        .filter_map(|layout| {
            let raw = match hexadecimal {
                Some(_) if layout.prints_as_hexadecimal(text) => layout.parse(text).ok()?,
                Some(raw) => raw.filter(|&raw| width_of(raw) == layout.width_bits())?,
                None => layout.parse(text).ok()?,
            };
            layout.contains(raw).then(|| Guess::new(*layout, raw))
        })
        .collect()
}

impl Layout {
    /// Remarks that the ID may be a sequential one from before the layout came into use, if its
    /// time says so.
    pub fn may_predate(&self, raw: u128) -> Option<MayPredate> {
        let time_ms = self.time_ms(raw);
        (time_ms < self.in_use_since_ms()).then(|| MayPredate {
            layout: self.name(),
            time_ms,
            in_use_since_ms: self.in_use_since_ms(),
        })
    }
}

impl fmt::Display for MayPredate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the ID reads as Unix ms {}, before {} came into use ({}); \
             it may be an older, sequential ID, which carries no time, or a backdated one",
            self.time_ms, self.layout, self.in_use_since_ms
        )
    }
}

impl Guess {
    fn new(layout: Layout, raw: u128) -> Self {
        Self {
            layout,
            raw,
            time_ms: layout.time_ms(raw),
            may_predate: layout.may_predate(raw),
        }
    }
}

fn width_of(raw: u128) -> u8 {
    if raw > u128::from(u64::MAX) { 128 } else { 64 }
}
