use std::fs;
use std::path::{Path, PathBuf};
use std::vec::Vec;

use crate::file::error::at;
use crate::file::{FileError, ReservationFile};
use crate::layout::Layout;
use crate::node::Node;
use crate::window::{LeaseStore, Window, WindowConfig};

/// The nodes of a folder that processes of one machine share. Each process gets the lowest free
/// node.
///
/// Only held nodes are skipped. A damaged, copied or early record is an error even if higher nodes
/// are free: an operator must look at it.
#[derive(Clone, Debug)]
pub struct NodeFolder {
    folder: PathBuf,
    layout: Layout,
    config: WindowConfig,
}

impl NodeFolder {
    /// The nodes of `layout` in `folder`. Several layouts may share a folder.
    pub fn new(folder: impl AsRef<Path>, layout: Layout, config: WindowConfig) -> Self {
        Self {
            folder: folder.as_ref().to_path_buf(),
            layout,
            config,
        }
    }

    /// [Adopts](ReservationFile::adopt) all records of the layout in the folder, and returns their
    /// nodes. An error leaves the records of higher nodes unchanged.
    ///
    /// # Errors
    /// [`FileError`] if the folder cannot be read, a file's node is invalid, a node is held, or its
    /// record is invalid or cannot be written.
    pub fn adopt(&self) -> Result<Vec<Node>, FileError> {
        let mut nodes = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(at(&self.folder))? {
            let name = entry.map_err(at(&self.folder))?.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.strip_suffix(".window")?.rsplit_once('-'))
                .filter(|(layout, _)| *layout == self.layout.name())
                .and_then(|(_, number)| number.parse().ok());
            if let Some(number) = number {
                nodes.push(Node::new(&self.layout, number).map_err(FileError::Node)?);
            }
        }
        nodes.sort_by_key(Node::number);
        for node in &nodes {
            ReservationFile::adopt(&self.folder, node)?;
        }
        Ok(nodes)
    }
}

impl LeaseStore for NodeFolder {
    type Lease = ReservationFile;

    fn acquire(&self, now_us: i64) -> Result<(ReservationFile, Window), FileError> {
        let max = Node::max(&self.layout).map_err(FileError::Node)?;
        for number in 0..=max {
            let node = Node::new(&self.layout, number).map_err(FileError::Node)?;
            match ReservationFile::open(&self.folder, node, self.config, now_us) {
                Err(FileError::Held { .. }) => {}
                done => return done,
            }
        }
        Err(FileError::AllHeld {
            folder: self.folder.clone(),
        })
    }
}
