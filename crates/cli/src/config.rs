//! The configuration: a TOML file, then the environment, then flags.

pub mod checks;
pub mod key_lines;
pub mod keys;
mod reading;
mod sections;
mod suggestion;

use crate::{error::CliError, options::global_options::Global};

pub use self::sections::{Config, IdSection, LogSection, MailSection, ServerSection, StoreSection};

impl Config {
    /// Reads the file and the environment, puts the flags above them and checks the values.
    ///
    /// # Errors
    /// [`CliError::Usage`] with the first fault and the number of the others.
    pub fn load(global: &Global) -> Result<Self, CliError> {
        Self::read(global).map_err(|faults| {
            let first = faults.first().map_or("", String::as_str);
            CliError::usage(match faults.len() {
                0 | 1 => first.to_owned(),
                2 => format!("{first} (`driftline config check` shows another fault)"),
                all => format!("{first} (`driftline config check` shows {} more)", all - 1),
            })
        })
    }

    /// The same.
    ///
    /// # Errors
    /// All faults, a sentence each, none of which has a value that may be secret.
    pub fn read(global: &Global) -> Result<Self, Vec<String>> {
        match Self::inspect(global) {
            (config, faults) if faults.is_empty() => Ok(config),
            (_, faults) => Err(faults),
        }
    }

    /// Reads what can be read, and all faults: what has one is as if it were not written.
    pub fn inspect(global: &Global) -> (Self, Vec<String>) {
        let (mut origins, mut faults) = reading::read(global);
        let (mut config, wrong) = reading::values(&origins);
        faults.extend(wrong);
        config.log.format = global.log_format.unwrap_or(config.log.format);
        let store = &mut config.store;
        for (key, is_given) in [
            ("log.format", global.log_format.is_some()),
            ("store.data", global.data.is_some()),
            ("store.database_url", global.database_url.is_some()),
            ("store.database_pool", global.database_pool.is_some()),
        ] {
            if is_given {
                origins.flags.push(key);
            }
        }
        store.data = global.data.clone().or(store.data.take());
        store.database_pool = global.database_pool.or(store.database_pool);
        store.database_url = global.database_url.clone().or(store.database_url.take());
        store.read_only = global.read_only;
        config.as_account.clone_from(&global.as_account);
        config.refresh.origins = origins.clone();
        config.origins = origins;
        faults.extend(checks::of_every_command(&config));
        (config, faults)
    }
}
