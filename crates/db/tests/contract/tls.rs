//! Encrypted connections: which certificates are accepted, and the errors for others.

use std::fs;
use std::sync::OnceLock;

use driftline_db::testing::Cluster;
use driftline_db::{Db, DbError, Options, Root, SecretUrl, Target, Tx};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

/// A cluster whose certificate an authority has signed for `db.example`, and two authorities.
struct Encrypted {
    cluster: Cluster,
    folder: TempDir,
}

impl Encrypted {
    fn shared() -> &'static Encrypted {
        static SHARED: OnceLock<Encrypted> = OnceLock::new();
        SHARED.get_or_init(Encrypted::start)
    }

    fn start() -> Encrypted {
        let folder = tempfile::tempdir().expect("a folder");
        let right = authority();
        for (name, authority) in [("right.pem", &right), ("wrong.pem", &authority())] {
            fs::write(folder.path().join(name), authority.pem()).expect("a file");
        }
        fs::write(folder.path().join("empty.pem"), "").expect("a file");
        let key = KeyPair::generate().expect("a key");
        let of_server = CertificateParams::new(vec!["db.example".to_owned()]).expect("a name");
        let certificate = of_server.signed_by(&key, &right).expect("a certificate");
        let cluster = Cluster::start_encrypted(&certificate.pem(), &key.serialize_pem());
        Encrypted {
            cluster: cluster.expect("a cluster"),
            folder,
        }
    }

    /// Opens it by a name, with further parameters in which `ROOT/` stands for the folder of
    /// authorities.
    fn open(&self, name: &str, parameters: &str) -> Result<Db, DbError> {
        open(&self.cluster, name, &self.resolved(parameters))
    }

    fn resolved(&self, parameters: &str) -> String {
        let folder = format!("{}/", self.folder.path().display());
        parameters.replace("ROOT/", &folder)
    }

    fn is_encrypted(&self, name: &str, parameters: &str) -> bool {
        let db = self.open(name, parameters).expect("a database");
        let answer = is_encrypted(&db);
        db.close_blocking();
        answer
    }

    fn refusal(&self, name: &str, parameters: &str) -> String {
        match self.open(name, parameters) {
            Ok(_) => panic!("{name} is taken with {parameters}"),
            Err(error) => {
                let text = error.to_string();
                assert!(!format!("{text} {error:?}").contains("hunter2"), "{text}");
                text
            }
        }
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("an authority")
}

fn open(cluster: &Cluster, name: &str, parameters: &str) -> Result<Db, DbError> {
    let (_, rest) = cluster
        .url()
        .split_once("://driftline@127.0.0.1:")
        .expect("a URL");
    let (port, _) = rest.split_once('/').expect("a port");
    let url = format!(
        "postgres://driftline:hunter2@{name}:{port}/postgres?hostaddr=127.0.0.1&{parameters}"
    );
    let target = Target::Postgres {
        url: SecretUrl::new(url),
        schema: None,
    };
    let mut options = Options::new(target, &[]);
    (options.readers, options.writers) = (1, 1);
    Db::open(options)
}

fn is_encrypted(db: &Db) -> bool {
    let ask = |tx: &mut Tx<'_>| {
        let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
        tx.query_one(sql, &[], |row| row.bool(0))
    };
    let reads = db.read_blocking(ask).expect("an answer");
    assert_eq!(
        db.write_blocking(Root::none(), ask),
        Ok::<_, DbError>(reads)
    );
    reads
}

#[test]
fn a_certificate_of_a_trusted_authority_for_the_right_name_is_taken() {
    let server = Encrypted::shared();
    let root = "sslrootcert=ROOT/right.pem";
    assert!(server.is_encrypted("db.example", &format!("sslmode=verify-full&{root}")));
    assert!(server.is_encrypted("db.example", &format!("sslmode=verify-ca&{root}")));
    assert!(server.is_encrypted("db.example", &format!("{root}&sslmode=require")));
}

#[test]
fn another_name_is_refused_where_the_name_counts() {
    let server = Encrypted::shared();
    let root = "sslrootcert=ROOT/right.pem";
    for name in ["other.example", "127.0.0.1"] {
        let text = server.refusal(name, &format!("sslmode=verify-full&{root}"));
        assert!(text.contains("is for another name"), "{text}");
        assert!(text.contains(name) && text.contains("verify-ca"), "{text}");
        assert!(server.is_encrypted(name, &format!("sslmode=verify-ca&{root}")));
    }
}

#[test]
fn another_authority_is_refused() {
    let server = Encrypted::shared();
    for parameters in [
        "sslmode=verify-full&sslrootcert=ROOT/wrong.pem",
        "sslmode=verify-ca&sslrootcert=ROOT/wrong.pem",
        "sslmode=require&sslrootcert=ROOT/wrong.pem",
        "sslmode=verify-full&sslrootcert=system",
        "sslmode=verify-full",
    ] {
        let text = server.refusal("db.example", parameters);
        assert!(text.contains("sslrootcert=FILE"), "{parameters}: {text}");
    }
}

#[test]
fn without_an_authority_encryption_is_all_that_is_asked_for() {
    let server = Encrypted::shared();
    for parameters in ["sslmode=require", "sslmode=prefer", ""] {
        assert!(
            server.is_encrypted("other.example", parameters),
            "{parameters}"
        );
    }
    assert!(!server.is_encrypted("other.example", "sslmode=disable"));
}

#[test]
fn the_error_names_a_file_without_authorities() {
    let server = Encrypted::shared();
    for file in ["ROOT/empty.pem", "ROOT/missing.pem"] {
        let parameters = format!("sslmode=verify-full&sslrootcert={file}");
        let text = server.refusal("db.example", &parameters);
        assert!(text.contains(&server.resolved(file)), "{text}");
    }
}

#[test]
fn a_server_without_tls_is_refused_where_it_is_required() {
    let cluster = Cluster::start().expect("a cluster");
    for mode in ["require", "verify-ca", "verify-full"] {
        let refused = open(&cluster, "db.example", &format!("sslmode={mode}"));
        let text = refused.expect_err("it is refused").to_string();
        assert!(
            text.contains("server does not support TLS"),
            "{mode}: {text}"
        );
    }
    let plain = open(&cluster, "db.example", "sslmode=prefer").expect("a database");
    assert!(!is_encrypted(&plain));
    plain.close_blocking();
}

#[test]
fn a_replaced_connection_is_encrypted_again() {
    let server = Encrypted::shared();
    let parameters = "sslmode=verify-full&sslrootcert=ROOT/right.pem";
    let db = server.open("db.example", parameters).expect("a database");
    let killer = server.open("db.example", parameters).expect("a database");
    for _ in 0..2 {
        assert!(is_encrypted(&db));
        let backend = db.write_blocking(Root::none(), |tx| {
            tx.query_one("select pg_backend_pid()", &[], |row| row.i64(0))
        });
        let backend = backend.map_err(|error: DbError| error).expect("a backend");
        let killed = killer.read_blocking(move |tx| {
            let sql = "select pg_terminate_backend($1, 10000)";
            tx.query_one(sql, &[&backend], |row| row.bool(0))
        });
        assert_eq!(killed, Ok::<_, DbError>(true));
    }
    assert!(is_encrypted(&db));
    assert_eq!(db.stats().reconnects, 2);
    db.close_blocking();
    killer.close_blocking();
}
