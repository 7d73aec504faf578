//! How busy the machine is.

use std::fmt;

/// The load averages of the last one, five and fifteen minutes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load([f64; 3]);

impl Load {
    /// As the system reports them; not-a-number where it does not.
    pub(crate) fn now() -> Self {
        let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let mut words = text.split_whitespace().map(|word| word.parse().ok());
        Self([(); 3].map(|()| words.next().flatten().unwrap_or(f64::NAN)))
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, five, fifteen] = self.0;
        write!(f, "{one:.2} {five:.2} {fifteen:.2}")
    }
}

/// The machine's processor time so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    all: f64,
    stolen: f64,
}

impl Times {
    /// As the system reports them; nothing where it does not.
    pub(crate) fn now() -> Self {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        let ticks: Vec<f64> = first
            .split_whitespace()
            .skip(1)
            .filter_map(|word| word.parse().ok())
            .collect();
        Self {
            // What guests used, the last two figures, is in the first two as well.
            all: ticks.iter().take(8).sum(),
            stolen: ticks.get(7).copied().unwrap_or_default(),
        }
    }

    /// The share of the processors' time since then that the host gave to others, percent.
    pub(crate) fn stolen_since(self) -> f64 {
        let now = Self::now();
        100.0 * (now.stolen - self.stolen) / (now.all - self.all).max(1.0)
    }
}
