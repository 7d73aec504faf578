//! `man`: the manual pages.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, Command};
use clap_mangen::Man as Pages;

use crate::{error::CliError, output};

/// Prints the manual page, or writes a page for every command.
#[derive(Debug, Clone, Args)]
pub struct Man {
    /// The folder for the pages, driftline.1, driftline-source.1 and so on; it is made.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    /// Prints or writes the pages of this command and those below it.
    ///
    /// # Errors
    /// [`CliError::Failed`] if a page cannot be written.
    pub fn run(&self, command: Command) -> Result<(), CliError> {
        match &self.out {
            Some(folder) => write(command, folder).map_err(|error| {
                let folder = folder.display();
                CliError::failed(format!("the pages cannot be written to {folder}: {error}"))
            }),
            None => output::line(page(command)?.trim_end()),
        }
    }
}

fn write(command: Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command, folder)
}

fn page(command: Command) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let rendered = Pages::new(command).render(&mut bytes);
    rendered.map_err(|error| CliError::failed(format!("the page cannot be made: {error}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        write(Cli::command(), folder.path()).unwrap();
        let main = fs::read_to_string(folder.path().join("driftline.1")).unwrap();
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let page = folder.path().join(format!("driftline-{name}.1"));
            assert!(page.exists(), "{name}");
            assert!(main.contains(&name.replace('-', "\\-")), "{name}");
        }
        let below = folder.path().join("driftline-source-add.1");
        assert!(below.exists());
        assert!(page(Cli::command()).unwrap().contains(".TH driftline"));
    }
}
