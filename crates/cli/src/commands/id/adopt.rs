//! `id adopt`: nodes of a folder that was copied or restored.

use clap::Args;
use driftline_id::{Node, file::ReservationFile};

use crate::{
    config::Config,
    error::CliError,
    ids::{Maker, folder, node_shown},
    output,
    place::Place,
};

/// Lets a node of a copied or restored data folder be used here.
///
/// You promise that the folder it was copied from makes no IDs with this node
/// any more.
#[derive(Debug, Args)]
pub struct Adopt {
    #[command(flatten)]
    maker: Maker,
}

impl Adopt {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub fn run(self, config: &Config) -> Result<(), CliError> {
        let maker = self.maker.or(&config.id)?;
        let layout = maker.layout();
        let node = match maker.named_node()? {
            Some(node) => node,
            None => Node::new(&layout, 0).map_err(|error| CliError::usage(error.to_string()))?,
        };
        let place = Place::new(&config.store)?;
        ReservationFile::adopt(&folder(place.data()), &node)
            .map_err(|error| CliError::failed(error.to_string()))?;
        output::line(&format!(
            "{} {} belongs to {} now",
            layout.name(),
            node_shown(&node),
            place.data().display()
        ))
    }
}
