//! `id adopt`: nodes of a folder that was copied or restored.

use clap::Args;
use driftline_id::{
    file::{FileError, NodeFolder, ReservationFile},
    window::WindowConfig,
};

use crate::{
    config::Config,
    data_dir::DataDir,
    error::CliError,
    options::id_options::{IdOptions, describe_node, folder},
    output,
};

/// Lets the nodes of a copied or restored data folder be used here.
///
/// You promise that the folder it was copied from makes no IDs with them any
/// more.
#[derive(Debug, Args)]
pub struct Adopt {
    #[command(flatten)]
    id_options: IdOptions,
}

impl Adopt {
    /// Runs it: for the configured node, else for all of the layout.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub fn run(self, config: &Config) -> Result<(), CliError> {
        let id_options = self.id_options.or(&config.id)?;
        let layout = id_options.generating_layout()?;
        let data_dir = DataDir::new(&config.store)?;
        let folder = folder(data_dir.data());
        let adopted = match id_options.configured_node()? {
            Some(node) => ReservationFile::adopt(&folder, &node)
                .map(|is_there| is_there.then_some(node).into_iter().collect()),
            None => NodeFolder::new(&folder, layout, WindowConfig::default()).adopt(),
        };
        let adopted = adopted.map_err(|error| match error {
            FileError::Held { .. } => CliError::locked(error),
            error => CliError::failed(error),
        })?;
        if adopted.is_empty() {
            return Err(CliError::failed(format!(
                "{} has no record of such a node of {}; nothing was adopted",
                folder.display(),
                layout.name()
            )));
        }
        for node in adopted {
            let (layout, node) = (layout.name(), describe_node(&node));
            output::line(&format!(
                "{layout} {node} belongs to {} now",
                data_dir.data().display()
            ))?;
        }
        Ok(())
    }
}
