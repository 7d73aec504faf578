use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use crate::field::FieldKind;
use crate::layout::Layout;
use crate::node::Node;
use crate::window::{BeginError, RecordError, Window, WindowEnd};

/// The record of one node: the times that its holder may use.
///
/// Displays as lines of text with a version and a checksum, and parses from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    layout: String,
    node: u64,
    from_us: i64,
    until_us: i64,
    fence: u64,
    location: String,
}

/// The length of windows, and the tolerated clock skew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// The distance from now to the window's end, in ms. At least
    /// [`SHORTEST_MS`](Self::SHORTEST_MS) is used. A longer window is written less often and
    /// survives a longer stall of the disk. After a crash the next holder waits up to this long,
    /// and after several consecutive crashes up to about two lengths.
    pub length_ms: u32,
    /// The tolerance in ms for a recorded window that reaches further than `length_ms` ahead of
    /// now. Beyond it the clock was wrong then or is wrong now, and no window begins. It should be
    /// at least one length, for consecutive crashes.
    pub max_clock_skew_ms: u32,
}

impl Record {
    /// The record of the node's next window, which begins at `max(until, now)`. `previous` is the
    /// node's last record, if it has one.
    ///
    /// The window has the full length, or a shorter one, down to a sixteenth, that keeps its end
    /// within two lengths from now. Consecutive crashes of holders therefore do not push the end
    /// away from the clock, unless one occurs in less than a sixteenth of a length.
    ///
    /// `location` identifies the record's place in a form that the store chooses.
    ///
    /// # Errors
    /// [`BeginError::ForeignLayout`] or [`BeginError::ForeignNode`] if `previous` belongs to
    /// another node, [`BeginError::ClockBehind`] if it ends too far ahead of `now_us`.
    pub fn begin(
        previous: Option<&Self>,
        node: &Node,
        location: &str,
        now_us: i64,
        config: &WindowConfig,
    ) -> Result<Self, BeginError> {
        let layout = fingerprint(node.layout());
        let mut record = Self {
            layout,
            node: node.number(),
            from_us: now_us,
            until_us: now_us,
            fence: 1,
            location: location.replace(['\n', '\r'], "?"),
        };
        if let Some(previous) = previous {
            previous.check_subject(&record)?;
            let ahead_us = previous.until_us.saturating_sub(now_us);
            if ahead_us > config.length_us() + config.max_clock_skew_us() {
                return Err(BeginError::ClockBehind {
                    behind_ms: ahead_us as u64 / 1_000,
                    until_us: previous.until_us,
                });
            }
            record.from_us = previous.until_us.max(now_us);
            record.fence = previous.fence.saturating_add(1);
        }
        let length_us = config.length_us();
        let min_us = record.from_us.saturating_add(length_us / 16);
        let max_us = record.from_us.saturating_add(length_us);
        let two_lengths_us = now_us.saturating_add(2 * length_us);
        record.until_us = two_lengths_us.clamp(min_us, max_us);
        Ok(record)
    }

    /// The Unix µs at which the window must be extended: four fifths of a length before its end.
    /// The window survives a stall of the disk of that time.
    pub fn due_us(&self, config: &WindowConfig) -> i64 {
        self.until_us.saturating_sub(config.length_us() / 5 * 4)
    }

    /// The record with the window extended to a length from now. `None` if that is not due yet.
    pub fn extended(&self, now_us: i64, config: &WindowConfig) -> Option<Self> {
        (now_us >= self.due_us(config)).then(|| Self {
            until_us: self.until_us.max(now_us.saturating_add(config.length_us())),
            ..self.clone()
        })
    }

    /// The record whose window ends at the retired generator's end, clamped to the window.
    #[must_use]
    pub fn ended(&self, used_until_us: i64) -> Self {
        Self {
            until_us: used_until_us.clamp(self.from_us, self.until_us),
            ..self.clone()
        }
    }

    /// The window of a durable record.
    ///
    /// **Call it once for each window begun**, and never for an extended or parsed record. Two
    /// windows of one record contain the same times, and their generators repeat each other's IDs.
    ///
    /// For another node it returns an empty window, in which a generator can only refuse, and an
    /// unrelated end.
    pub fn window(&self, node: Node) -> (Window, WindowEnd) {
        if node.number() == self.node && fingerprint(node.layout()) == self.layout {
            return Window::recorded(node, self.from_us, self.until_us);
        }
        let (empty, _) = Window::recorded(node, self.from_us, self.from_us);
        let (_, end) = Window::recorded(node, self.from_us, self.from_us);
        (empty, end)
    }

    /// The same record kept at another location.
    #[must_use]
    pub fn moved_to(&self, location: &str) -> Self {
        Self {
            location: location.replace(['\n', '\r'], "?"),
            ..self.clone()
        }
    }

    /// Parses the text that a record displays as.
    ///
    /// # Errors
    /// [`RecordError`] if the text is damaged, has another version, or a line is missing or
    /// invalid.
    pub fn parse(text: &str) -> Result<Self, RecordError> {
        let (body, check) = text
            .strip_suffix('\n')
            .and_then(|text| text.rsplit_once("\ncheck "))
            .ok_or(RecordError::Torn)?;
        if check != checksum(body) {
            return Err(RecordError::Torn);
        }
        let mut lines = body.split('\n');
        if lines.next() != Some(HEAD) {
            return Err(RecordError::Version);
        }
        let mut value = |name: &'static str| {
            let line = lines.next().ok_or(RecordError::Line { name })?;
            let rest = line.strip_prefix(name).and_then(|s| s.strip_prefix(' '));
            rest.ok_or(RecordError::Line { name })
        };
        let record = Self {
            layout: value("layout")?.to_string(),
            node: number(value("node")?, "node")?,
            from_us: number(value("from_us")?, "from_us")?,
            until_us: number(value("until_us")?, "until_us")?,
            fence: number(value("fence")?, "fence")?,
            location: value("place")?.to_string(),
        };
        match lines.next() {
            None if record.from_us <= record.until_us => Ok(record),
            _ => Err(RecordError::Line { name: "until_us" }),
        }
    }

    /// The node's number.
    pub const fn node(&self) -> u64 {
        self.node
    }

    /// The first Unix µs of the window.
    pub const fn from_us(&self) -> i64 {
        self.from_us
    }

    /// The end of the window in Unix µs: the next window begins there or later.
    pub const fn until_us(&self) -> i64 {
        self.until_us
    }

    /// The number of windows that the node has begun.
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// The record's location.
    pub fn location(&self) -> &str {
        &self.location
    }

    fn check_subject(&self, expected: &Self) -> Result<(), BeginError> {
        if self.layout != expected.layout {
            return Err(BeginError::ForeignLayout {
                recorded: self.layout.clone(),
                wanted: expected.layout.clone(),
            });
        }
        if self.node != expected.node {
            return Err(BeginError::ForeignNode {
                recorded: self.node,
                wanted: expected.node,
            });
        }
        Ok(())
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = format!(
            "{HEAD}\nlayout {}\nnode {}\nfrom_us {}\nuntil_us {}\nfence {}\nplace {}",
            self.layout, self.node, self.from_us, self.until_us, self.fence, self.location
        );
        writeln!(f, "{body}\ncheck {}", checksum(&body))
    }
}

impl WindowConfig {
    /// The shortest length of a window, in ms: two ticks of the coarsest unit.
    pub const SHORTEST_MS: u32 = 20;

    fn length_us(&self) -> i64 {
        i64::from(self.length_ms.max(Self::SHORTEST_MS)) * 1_000
    }

    fn max_clock_skew_us(&self) -> i64 {
        i64::from(self.max_clock_skew_ms) * 1_000
    }
}

impl Default for WindowConfig {
    /// Windows of 5 s, written every second, and a minute of clock skew.
    fn default() -> Self {
        Self {
            length_ms: 5_000,
            max_clock_skew_ms: 60_000,
        }
    }
}

/// The layout in one line. Layouts with the same fingerprint make the same IDs.
fn fingerprint(layout: &Layout) -> String {
    let mut text = format!(
        "{} epoch_ms={} unit_us={} time:{}",
        layout.name(),
        layout.epoch_ms(),
        layout.unit().us(),
        layout.time_bits()
    );
    for field in layout.fields() {
        text += &format!(" {}:{}", field.name(), field.bits());
        // A layout with a node has no fields but these two kinds, and all sequences are named so.
        if field.kind() == FieldKind::Node && field.name() == "sequence" {
            text += ":node";
        }
    }
    text
}

fn number<N: core::str::FromStr>(text: &str, name: &'static str) -> Result<N, RecordError> {
    text.parse().map_err(|_| RecordError::Line { name })
}

/// FNV-1a of 64 bits (Fowler, Noll, Vo), in hexadecimal: against accidents, not against malice.
fn checksum(body: &str) -> String {
    let hash = body.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

const HEAD: &str = "driftline-id window 1";
