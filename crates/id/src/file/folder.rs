use std::path::{Path, PathBuf};

use crate::file::{FileError, ReservationFile};
use crate::layout::Layout;
use crate::node::Node;
use crate::window::{LeaseStore, Terms, Window};

/// Nodes for the processes of one machine that share a folder: each gets the lowest that nobody
/// holds.
#[derive(Clone, Debug)]
pub struct NodeFolder {
    folder: PathBuf,
    layout: Layout,
    terms: Terms,
}

impl NodeFolder {
    /// The nodes of a layout in that folder. Several layouts may share one.
    pub fn new(folder: impl AsRef<Path>, layout: Layout, terms: Terms) -> Self {
        Self {
            folder: folder.as_ref().to_path_buf(),
            layout,
            terms,
        }
    }
}

impl LeaseStore for NodeFolder {
    type Lease = ReservationFile;

    fn acquire(&self, now_us: i64) -> Result<(ReservationFile, Window), FileError> {
        let max = Node::max(&self.layout).map_err(FileError::Node)?;
        for number in 0..=max {
            let node = Node::new(&self.layout, number).map_err(FileError::Node)?;
            match ReservationFile::open(&self.folder, node, self.terms, now_us) {
                Err(FileError::Held { .. }) => {}
                done => return done,
            }
        }
        Err(FileError::AllHeld {
            folder: self.folder.clone(),
        })
    }
}
