//! Questions whose answers the terminal does not show.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use secrecy::SecretString;

use crate::error::CliError;

/// Asks on the terminal of this process, wherever its input and output go.
///
/// # Errors
/// [`CliError`] if there is no terminal, or whoever is asked ends the question with Ctrl-C or Ctrl-D. Never
/// holds what was typed.
pub fn ask(question: &str) -> Result<SecretString, CliError> {
    let failed = |error| CliError::failed(format!("the terminal cannot be read: {error}"));
    let tty = File::options().read(true).write(true).open("/dev/tty");
    let tty = tty.map_err(failed)?;
    let hidden = Hidden::begin(&tty).map_err(failed)?;
    // Whoever answers at once is hidden, too.
    write!(&tty, "{question}").map_err(failed)?;
    // The terminal gives one line at a time, with its end.
    let mut line = vec![0; MAX_LINE];
    let length = (&tty).read(&mut line).map_err(failed)?;
    line.truncate(length);
    drop(hidden);
    let end = line.pop();
    if end != Some(b'\n') {
        // The terminal has shown no line end.
        let _ = writeln!(&tty);
        return Err(CliError::failed("nothing was typed; nothing was changed"));
    }
    let text = String::from_utf8(line);
    text.map(SecretString::from)
        .map_err(|_| CliError::usage("what was typed is not UTF-8"))
}

/// While it lives the terminal shows nothing of what is typed. Ctrl-C ends the line, and not the process,
/// which would leave the terminal so.
struct Hidden<'a> {
    tty: &'a File,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn begin(tty: &'a File) -> io::Result<Self> {
        let before = tcgetattr(tty)?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
        modes.local_modes |= LocalModes::ICANON | LocalModes::ECHONL;
        modes.special_codes[SpecialCodeIndex::VEOL] = before.special_codes[SpecialCodeIndex::VINTR];
        tcsetattr(tty, OptionalActions::Now, &modes)?;
        Ok(Self { tty, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.tty, OptionalActions::Now, &self.before);
    }
}

/// More than a terminal gives of one line.
const MAX_LINE: usize = 8_192;
