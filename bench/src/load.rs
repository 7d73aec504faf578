//! How busy the machine is.

use std::fmt;

/// The load averages of the last one, five and fifteen minutes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load([f64; 3]);

impl Load {
    /// As the system tells them; not-a-number where it does not.
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
