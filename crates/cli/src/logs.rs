//! The log on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::{
    EnvFilter, Registry, filter::LevelFilter, layer::SubscriberExt as _, reload,
    util::SubscriberInitExt as _,
};

use crate::{
    config::LogSection,
    error::CliError,
    options::{global_options::Global, log_format::LogFormat},
    output,
};

/// The log of this process.
#[derive(Debug, Clone)]
pub struct Log {
    filter: reload::Handle<EnvFilter, Registry>,
    /// Whether flags or `RUST_LOG` say what is logged, above the configuration.
    is_fixed: bool,
}

impl Log {
    /// Begins to log: by `--quiet` or `-v`, else `RUST_LOG`, else the configuration. Colours are for
    /// terminals where `NO_COLOR` is not set.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the configured level is invalid.
    pub fn start(global: &Global, section: &LogSection) -> Result<Self, CliError> {
        let fixed = fixed(global, std::env::var("RUST_LOG").ok());
        let is_fixed = fixed.is_some();
        let first = match fixed {
            Some(directives) => EnvFilter::new(directives),
            None => configured(section)?,
        };
        let (filter, handle) = reload::Layer::new(first);
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal() && !no_color);
        let registry = tracing_subscriber::registry().with(filter);
        match global.log_format.unwrap_or(section.format) {
            LogFormat::Text => registry.with(lines).init(),
            LogFormat::Json => {
                output::begin_json_messages();
                registry.with(lines.json()).init();
            }
        }
        Ok(Self {
            filter: handle,
            is_fixed,
        })
    }

    /// Logs what the configuration says from now on, unless flags or `RUST_LOG` say it.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the configured level is invalid.
    pub fn apply(&self, section: &LogSection) -> Result<(), CliError> {
        if self.is_fixed {
            return Ok(());
        }
        let filter = configured(section)?;
        self.filter.reload(filter).map_err(CliError::failed)
    }
}

/// What the configuration says is logged.
///
/// # Errors
/// [`CliError::Usage`] if the level is invalid.
pub fn configured(section: &LogSection) -> Result<EnvFilter, CliError> {
    let level = section.level.as_deref().unwrap_or(DEFAULT);
    let filter = EnvFilter::try_new(level).ok();
    filter.filter(|_| names_levels(level)).ok_or_else(|| {
        CliError::usage(format!(
            "invalid level {level:?}: expected error, warn, info, debug or trace, or directives as in RUST_LOG, each with its level (hyper=debug)"
        ))
    })
}

/// Returns whether each directive has a level. `EnvFilter` reads a mistyped level as the name of a module and silences
/// everything else.
fn names_levels(directives: &str) -> bool {
    // Commas within the brackets of a span divide nothing.
    let mut is_within = false;
    let mut directives = directives.split(|c| {
        is_within = (is_within || c == '[') && c != ']';
        c == ',' && !is_within
    });
    directives.all(|directive| {
        let directive = directive.trim();
        let is_level = directive.parse::<LevelFilter>().is_ok();
        let after_span = directive.rsplit(']').next().unwrap_or(directive);
        directive.is_empty() || is_level || after_span.contains('=')
    })
}

fn fixed(global: &Global, variable: Option<String>) -> Option<String> {
    match (global.quiet, global.verbose) {
        (true, _) => Some("error".to_owned()),
        (false, 1) => Some("info".to_owned()),
        (false, 2..) => Some("debug".to_owned()),
        (false, 0) => variable.filter(|directives| !directives.is_empty()),
    }
}

/// What is logged where nothing says it.
pub const DEFAULT: &str = "warn";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_level_is_refused() {
        let of = |level: &str| {
            configured(&LogSection {
                level: Some(level.to_owned()),
                ..LogSection::default()
            })
        };
        for right in [
            "warn",
            "INFO",
            "off",
            "info,hyper=debug",
            "warn,[poll]=debug",
            "",
        ] {
            assert!(of(right).is_ok(), "{right:?}");
        }
        for wrong in [
            "warning",
            "inof",
            "info,hyper",
            "hyper",
            "a=loud",
            "[poll]",
            "a[b{c=1}]",
        ] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn flags_are_stronger_than_the_variable() {
        let of = |quiet, verbose, variable: &str| {
            let global = Global {
                quiet,
                verbose,
                ..Global::default()
            };
            fixed(&global, Some(variable.to_owned()))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(true, 0, "trace"), some("error"));
        assert_eq!(of(false, 1, "trace"), some("info"));
        assert_eq!(of(false, 3, "trace"), some("debug"));
        assert_eq!(of(false, 0, "trace"), some("trace"));
        assert_eq!(of(false, 0, ""), None);
    }
}
