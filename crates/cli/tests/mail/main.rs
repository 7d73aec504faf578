//! Mail of sign-ups through a real SMTP server, with the real binary.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use serde_json::Value;
use support::{DataDir, Running, browser::Browser, wait_for};

const PASSPHRASE: &str = "correct horse battery";
/// Of the user of the SMTP server.
const SECRET: &str = "the secret of the mail server";

/// The SMTP server; it ends with this value.
struct SmtpServer {
    process: Child,
    said: Receiver<Value>,
    port: u16,
}

impl SmtpServer {
    fn start(arguments: &[&str]) -> Self {
        let python = std::env::var("DRIFTLINE_PYTHON").unwrap_or_else(|_| "python3".into());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mail/server.py");
        let mut process = Command::new(python)
            .args(["-B", script])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (say, said) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let Ok(()) = say.send(serde_json::from_str(&line).unwrap()) else {
                    return;
                };
            }
        });
        let mut server = Self {
            process,
            said,
            port: 0,
        };
        // If this fails, is aiosmtpd there? `cargo xtask setup` installs it.
        server.port = u16::try_from(server.said("port")["port"].as_u64().unwrap()).unwrap();
        server
    }

    /// The next that it says with that member.
    fn said(&self, member: &str) -> Value {
        loop {
            let said = self.said.recv_timeout(Duration::from_secs(60));
            let said = said.unwrap_or_else(|error| panic!("no {member}: {error}"));
            if !said[member].is_null() {
                return said;
            }
        }
    }

    /// Whether it was ever said in what it has said by now.
    fn has_said(&self, member: &str) -> bool {
        self.said.try_iter().any(|said| !said[member].is_null())
    }
}

impl Drop for SmtpServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server where anyone may sign up, which sends mail as that section of its configuration says.
struct Scene {
    data_dir: DataDir,
    _server: Running,
    base: String,
}

impl Scene {
    fn begin(data_dir: DataDir, mail: &str) -> Self {
        let accounts = "[accounts]\nsign_up = \"open\"\n";
        let config = format!("{accounts}[mail]\nfrom = \"Drift <mail@drift.example>\"\n{mail}");
        data_dir.file("driftline.toml", &config);
        let (server, base) = data_dir.serve(&[]);
        Self {
            data_dir,
            _server: server,
            base,
        }
    }

    /// Signs up on the page; what it says then.
    async fn sign_up(&self, name: &str, language: &str) -> String {
        let mut browser = Browser::new(&self.base, language);
        let (status, body) = browser.sign_up(name, PASSPHRASE).await;
        assert_eq!(status, 200, "{body}");
        assert!(body.contains(&format!("{name}@mail.example")), "{body}");
        body
    }

    /// Follows the link of a mail, and logs in.
    async fn confirm_and_log_in(&self, name: &str, text: &str) {
        let mut links = text.split_whitespace();
        let link = links.rfind(|word| word.starts_with(&self.base));
        let link = link.unwrap_or_else(|| panic!("no link in {text}"));
        let mut browser = Browser::new(&self.base, "en");
        let path = link.strip_prefix(&self.base).unwrap();
        let (status, body) = browser.submit(path, "/confirm", &[]).await;
        assert_eq!(status, 200, "{body}");
        let (status, body) = browser.log_in(name, PASSPHRASE).await;
        assert_eq!(status, 303, "{body}");
        let (_, body) = browser.get("/log-in").await;
        assert!(body.contains(&format!("@{name}")), "{body}");
    }

    fn logs(&self, what: &str) {
        wait_for(what, || self.data_dir.log().contains(what));
    }
}

/// Nobody learns an address or a secret from the log.
impl Drop for Scene {
    fn drop(&mut self) {
        let log = self.data_dir.log();
        let is_told = [SECRET, PASSPHRASE, "mail.example", "state="]
            .iter()
            .any(|secret| log.contains(secret));
        assert!(!is_told || thread::panicking(), "{log}");
    }
}

/// A certificate for `localhost` and its key, in files.
fn certificate(data_dir: &DataDir) -> (String, String) {
    let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let CertifiedKey { cert, signing_key } = made;
    let key: KeyPair = signing_key;
    (
        data_dir.file("certificate.pem", &cert.pem()),
        data_dir.file("key.pem", &key.serialize_pem()),
    )
}

/// The server speaks TLS in that way, and knows one user.
fn with_tls(data_dir: &DataDir, tls: &str) -> SmtpServer {
    let (certificate, key) = certificate(data_dir);
    SmtpServer::start(&[
        "--tls",
        tls,
        "--certificate",
        &certificate,
        "--key",
        &key,
        "--passphrase",
        SECRET,
    ])
}

/// With what the server that speaks TLS is trusted.
fn trusting() -> DataDir {
    let data_dir = DataDir::new();
    let certificate = data_dir.folder().join("certificate.pem");
    let certificate = certificate.to_str().unwrap().to_owned();
    data_dir.with("SSL_CERT_FILE", &certificate)
}

fn as_ann(scheme: &str, port: u16, data_dir: &DataDir, passphrase: &str) -> String {
    let file = data_dir.file("smtp", &format!("{passphrase}\n"));
    format!("smtp = \"{scheme}://ann@localhost:{port}\"\npassphrase_file = \"{file}\"\n")
}

#[tokio::test]
async fn who_signs_up_is_mailed_by_starttls_and_a_log_in() {
    let data_dir = trusting();
    let server = with_tls(&data_dir, "starttls");
    let mail = as_ann("smtp", server.port, &data_dir, SECRET);
    let scene = Scene::begin(data_dir, &mail);
    scene.sign_up("dora", "en").await;
    let mail = server.said("text");
    assert_eq!(mail["to"], serde_json::json!(["dora@mail.example"]));
    assert_eq!(mail["sender"], "mail@drift.example");
    assert_eq!((&mail["tls"], &mail["user"]), (&true.into(), &"ann".into()));
    assert_eq!(mail["subject"], "Confirm your address");
    let text = mail["text"].as_str().unwrap();
    scene.confirm_and_log_in("dora", text).await;
    let log = scene.data_dir.log();
    assert_eq!(lines_about_mail(&log), [""; 0], "{log}");
}

/// The lines of a log, but for the one of a first start that says where the operator's token is.
fn lines_about_mail(log: &str) -> Vec<&str> {
    let is_of_token = |line: &&str| line.starts_with("the operator's token is in");
    log.lines().filter(|line| !is_of_token(line)).collect()
}

#[tokio::test]
async fn who_signs_up_is_mailed_over_tls_in_their_language() {
    let data_dir = trusting();
    let server = with_tls(&data_dir, "implicit");
    let mail = as_ann("smtps", server.port, &data_dir, SECRET);
    let scene = Scene::begin(data_dir, &mail);
    scene.sign_up("dora", "ja").await;
    let mail = server.said("text");
    assert_eq!((&mail["tls"], &mail["user"]), (&true.into(), &"ann".into()));
    assert_eq!(mail["subject"], "メールアドレスの確認");
    let text = mail["text"].as_str().unwrap();
    assert!(text.contains("次のリンクを開いて"), "{text}");
    scene.confirm_and_log_in("dora", text).await;
}

#[tokio::test]
async fn on_this_machine_mail_needs_no_tls_and_no_user() {
    let server = SmtpServer::start(&[]);
    let mail = format!("smtp = \"smtp://127.0.0.1:{}\"\n", server.port);
    let scene = Scene::begin(DataDir::new(), &mail);
    scene.sign_up("dora", "pt").await;
    let mail = server.said("text");
    assert_eq!((&mail["tls"], &mail["user"]), (&false.into(), &Value::Null));
    let text = mail["text"].as_str().unwrap();
    scene.confirm_and_log_in("dora", text).await;
}

#[tokio::test]
async fn a_wrong_passphrase_is_told_to_the_operator_at_once() {
    let data_dir = trusting();
    let server = with_tls(&data_dir, "starttls");
    let mail = as_ann("smtp", server.port, &data_dir, "another passphrase");
    let scene = Scene::begin(data_dir, &mail);
    scene.logs(
        "the SMTP server refuses the log-in (535); check the user in mail.smtp, and its passphrase",
    );
    server.said("login");
    // Who signs up is told no lie, and may have the mail sent again once it is mended.
    let page = scene.sign_up("dora", "en").await;
    assert!(page.contains("A mail is on its way"), "{page}");
    assert!(page.contains("/sign-up/resend"), "{page}");
    server.said("login");
    assert!(!server.has_said("text"));
    assert!(!scene.data_dir.log().contains("another passphrase"));
}

#[tokio::test]
async fn nothing_is_sent_to_a_server_that_nobody_vouches_for() {
    // As `trusting`, but for the certificate.
    let data_dir = DataDir::new();
    let server = with_tls(&data_dir, "starttls");
    let mail = as_ann("smtp", server.port, &data_dir, SECRET);
    let scene = Scene::begin(data_dir, &mail);
    scene.logs("no secure connection to the SMTP server; its certificate must be valid");
    scene.sign_up("dora", "en").await;
    assert!(!server.has_said("login") && !server.has_said("text"));
}

#[tokio::test]
async fn mail_waits_for_a_server_that_is_away() {
    let first = SmtpServer::start(&[]);
    let port = first.port;
    drop(first);
    let mail = format!("smtp = \"smtp://127.0.0.1:{port}\"\n");
    let scene = Scene::begin(DataDir::new(), &mail);
    scene.logs("the SMTP server cannot be reached; check mail.smtp, and whether the server runs");
    scene.sign_up("dora", "en").await;
    let server = SmtpServer::start(&["--port", &port.to_string()]);
    let mail = server.said("text");
    let text = mail["text"].as_str().unwrap();
    scene.confirm_and_log_in("dora", text).await;
    scene.logs("mail is sent again, after");
    let log = scene.data_dir.log();
    assert_eq!(lines_about_mail(&log).len(), 2, "{log}");
}

#[tokio::test]
async fn mail_that_a_server_refuses_is_sent_again_if_it_may_be_taken() {
    let server = SmtpServer::start(&[]);
    let mail = format!("smtp = \"smtp://127.0.0.1:{}\"\n", server.port);
    let scene = Scene::begin(DataDir::new(), &mail);
    // One address that is not there is no fault of the operator's; two in a row may be.
    scene.sign_up("refused", "en").await;
    assert_eq!(server.said("asked")["asked"], "refused@mail.example");
    scene.sign_up("refused2", "en").await;
    scene.logs("the SMTP server refuses mails (550); if it refuses all of them, check mail.from");
    scene.sign_up("busy", "en").await;
    scene.logs("the SMTP server takes none at the moment (451)");
    let mail = server.said("text");
    assert_eq!(mail["to"][0], "busy@mail.example");
    let text = mail["text"].as_str().unwrap();
    scene.confirm_and_log_in("busy", text).await;
}
