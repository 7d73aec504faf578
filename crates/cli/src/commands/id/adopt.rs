//! `id adopt`: nodes of a folder that was copied or restored.

use clap::Args;
use driftline_id::{
    file::{NodeFolder, ReservationFile},
    window::Terms,
};

use crate::{
    config::Config,
    error::CliError,
    ids::{Maker, folder, node_shown},
    output,
    place::Place,
};

/// Lets the nodes of a copied or restored data folder be used here.
///
/// You promise that the folder it was copied from makes no IDs with them any
/// more.
#[derive(Debug, Args)]
pub struct Adopt {
    #[command(flatten)]
    maker: Maker,
}

impl Adopt {
    /// Runs it: one node if it is named, else all of the layout.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub fn run(self, config: &Config) -> Result<(), CliError> {
        let maker = self.maker.or(&config.id)?;
        let layout = maker.made_layout()?;
        let place = Place::new(&config.store)?;
        let folder = folder(place.data());
        let adopted = match maker.named_node()? {
            Some(node) => ReservationFile::adopt(&folder, &node)
                .map(|is_there| is_there.then_some(node).into_iter().collect()),
            None => NodeFolder::new(&folder, layout, Terms::default()).adopt(),
        };
        let adopted = adopted.map_err(|error| CliError::failed(error.to_string()))?;
        if adopted.is_empty() {
            return Err(CliError::failed(format!(
                "{} has no record of such a node of {}; nothing was adopted",
                folder.display(),
                layout.name()
            )));
        }
        for node in adopted {
            let (layout, node) = (layout.name(), node_shown(&node));
            output::line(&format!(
                "{layout} {node} belongs to {} now",
                place.data().display()
            ))?;
        }
        Ok(())
    }
}
