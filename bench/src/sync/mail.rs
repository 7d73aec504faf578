//! The peer of mail: mbsync, which copies a Maildir that Dovecot serves, as a command does that syncs a replica.

use std::{
    cell::Cell,
    env, fs,
    net::{TcpListener, TcpStream},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::phase::{Phase, Phases};
use crate::failure::Failure;

/// The programs.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    dovecot: PathBuf,
    mbsync: PathBuf,
}

/// A server with a mailbox.
pub(super) struct Mail {
    programs: Programs,
    /// It ends with this value, before its folder.
    _server: Dovecot,
    folder: TempDir,
    text: Box<dyn Fn(usize) -> String>,
    messages: Cell<usize>,
    changes: usize,
}

impl Programs {
    /// Their versions.
    pub(super) fn versions(&self) -> Result<String, Failure> {
        let version = |program: &Path| -> Result<String, Failure> {
            let output = Command::new(program).arg("--version").output()?;
            let text = String::from_utf8_lossy(&output.stdout);
            Ok(text.lines().next().unwrap_or_default().trim().to_owned())
        };
        let (dovecot, mbsync) = (version(&self.dovecot)?, version(&self.mbsync)?);
        Ok(format!("{mbsync} and Dovecot {dovecot}"))
    }

    /// `None` if one is not installed.
    pub(super) fn find() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let find = |name: &str| {
            let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
            let mut programs = folders.map(|folder| folder.join(name));
            programs.find(|program| program.is_file())
        };
        Some(Self {
            dovecot: find("dovecot")?,
            mbsync: find("mbsync")?,
        })
    }

    /// Starts a server with so many messages, and fills its indexes. Each round delivers `changes` more.
    pub(super) fn serve(
        self,
        messages: usize,
        changes: usize,
        text: Box<dyn Fn(usize) -> String>,
    ) -> Result<Mail, Failure> {
        let folder = tempfile::tempdir()?;
        set_mode(folder.path(), 0o755)?;
        for name in ["mail", "mail/cur", "mail/new", "mail/tmp"] {
            let path = folder.path().join(name);
            fs::create_dir(&path)?;
            // The server may read mail as another user.
            set_mode(&path, 0o777)?;
        }
        let server = Dovecot::start(&self.dovecot, folder.path())?;
        let config = MBSYNC.replace("FOLDER", &folder.path().display().to_string());
        let config = config.replace("PORT", &server.port.to_string());
        fs::write(folder.path().join("mbsyncrc"), config)?;
        let mail = Mail {
            programs: self,
            _server: server,
            folder,
            text,
            messages: Cell::new(0),
            changes,
        };
        mail.deliver(messages)?;
        mail.round()?;
        Ok(mail)
    }
}

impl Mail {
    /// Copies the mailbox to a new one, then new messages, then nothing.
    pub(super) fn round(&self) -> Result<Phases, Failure> {
        let near = self.folder.path().join("near");
        if near.is_dir() {
            fs::remove_dir_all(&near)?;
        }
        fs::create_dir(&near)?;
        let messages = self.messages.get();
        let full = self.sync(0)?;
        self.deliver(self.changes)?;
        let phases = Phases {
            full,
            changed: self.sync(messages)?,
            none: self.sync(messages + self.changes)?,
            ..Phases::UNKNOWN
        };
        phases.checked(messages, self.changes)
    }

    /// Runs mbsync on a copy with so many messages.
    fn sync(&self, before: usize) -> Result<Phase, Failure> {
        let mut command = Command::new(&self.programs.mbsync);
        command.args(["-q", "-c"]);
        command.arg(self.folder.path().join("mbsyncrc")).arg("all");
        let begun = Instant::now();
        let output = command.stdin(Stdio::null()).output()?;
        let seconds = begun.elapsed().as_secs_f64();
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::new(format!("mbsync failed: {errors}")));
        }
        let mut copied = 0;
        for name in ["cur", "new"] {
            let folder = self.folder.path().join("near/INBOX").join(name);
            copied += fs::read_dir(folder)?.count();
        }
        Ok(Phase {
            seconds,
            read: copied as f64 - before as f64,
            ..Phase::UNKNOWN
        })
    }

    /// Delivers so many messages of about 1 kB.
    fn deliver(&self, count: usize) -> Result<(), Failure> {
        let first = self.messages.get();
        for number in first..first + count {
            let text = (self.text)(number);
            let message = format!(
                "From: ann@mail.example\nTo: ben@mail.example\nSubject: Note {number}\n\
                 Date: Thu, 09 Oct 2025 08:53:20 +0000\nMessage-ID: <{number}@mail.example>\n\
                 MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\
                 Content-Transfer-Encoding: 8bit\n\n{text}\n"
            );
            let name = format!("mail/new/{}.M{number}P1.bench", 1_760_000_000 + number);
            fs::write(self.folder.path().join(name), message)?;
        }
        self.messages.set(first + count);
        Ok(())
    }
}

/// A running server.
struct Dovecot {
    child: Child,
    port: u16,
}

impl Dovecot {
    /// Starts it on a free port and waits until it answers. It writes into the folder only.
    fn start(program: &Path, folder: &Path) -> Result<Self, Failure> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let own = fs::metadata("/proc/self")?;
        let (uid, gid, users) = match own.uid() {
            // It refuses to read mail as root.
            0 => (NOBODY, NOBODY, String::new()),
            uid => (uid, own.gid(), as_one_user()?),
        };
        let config = DOVECOT
            .replace("FOLDER", &folder.display().to_string())
            .replace("PORT", &port.to_string())
            .replace("UID", &uid.to_string())
            .replace("GID", &gid.to_string());
        let path = folder.join("dovecot.conf");
        fs::write(&path, config + &users)?;
        let mut command = Command::new(program);
        command.args(["-F", "-c"]).arg(&path).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).spawn()?;
        let mut server = Self { child, port };
        let deadline = Instant::now() + START_LIMIT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.child.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(folder.join("dovecot.log")).unwrap_or_default();
                return Err(Failure::new(format!("Dovecot has not started: {log}")));
            }
            sleep(PAUSE);
        }
        Ok(server)
    }
}

impl Drop for Dovecot {
    /// Asks it to end, since it then ends its other processes, and kills it if it does not.
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").arg(id).status();
        let deadline = Instant::now() + END_LIMIT;
        while asked.as_ref().is_ok_and(|asked| asked.success()) && Instant::now() < deadline {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            sleep(PAUSE);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The settings of a server whose processes all belong to the user who starts it.
fn as_one_user() -> Result<String, Failure> {
    let own = |what: &str| -> Result<String, Failure> {
        let output = Command::new("id").arg(what).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let (user, group) = (own("-un")?, own("-gn")?);
    Ok(ONE_USER.replace("USER", &user).replace("GROUP", &group))
}

fn set_mode(folder: &Path, mode: u32) -> Result<(), Failure> {
    fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
    Ok(())
}

const DOVECOT: &str = "\
base_dir = FOLDER/run
state_dir = FOLDER/run
log_path = FOLDER/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
default_vsz_limit = 0
mail_location = maildir:FOLDER/mail
first_valid_uid = 1
passdb {
  driver = static
  args = password=bench
}
userdb {
  driver = static
  args = uid=UID gid=GID home=FOLDER
}
service imap-login {
  inet_listener imap {
    port = PORT
  }
  inet_listener imaps {
    port = 0
  }
}
";
const ONE_USER: &str = "\
default_internal_user = USER
default_internal_group = GROUP
default_login_user = USER
service anvil {
  chroot =
}
service imap-login {
  chroot =
}
";
const MBSYNC: &str = "\
IMAPStore far
Host 127.0.0.1
Port PORT
User bench
Pass bench
SSLType None
AuthMechs LOGIN

MaildirStore near
Path FOLDER/near/
Inbox FOLDER/near/INBOX
SubFolders Verbatim

Channel all
Far :far:
Near :near:
Patterns INBOX
Create Near
Sync Pull
SyncState *
";
/// `nobody` and its group.
const NOBODY: u32 = 65_534;
const PAUSE: Duration = Duration::from_millis(20);
const START_LIMIT: Duration = Duration::from_secs(30);
const END_LIMIT: Duration = Duration::from_secs(10);
