//! `account`: the people of this server, with and without a running server.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    io::{BufReader, Read as _, Write as _},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use support::{DataDir, Ended, browser::Browser};

const PASSPHRASE: &str = "correct horse battery";

/// Runs it with that text on standard input.
fn with_input(data_dir: &DataDir, arguments: &[&str], input: &str) -> Ended {
    let mut child = data_dir
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may end before it has read all.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    Ended::of(child.wait_with_output().unwrap())
}

fn create(data_dir: &DataDir, name: &str) -> Ended {
    let mail = format!("{name}@mail.example");
    let arguments = ["account", "create", name, "--mail", &mail, "--stdin"];
    with_input(data_dir, &arguments, &format!("{PASSPHRASE}\n"))
}

fn refused(ended: &Ended, status: i32, said: &str) {
    assert_eq!(ended.status, status, "{ended:?}");
    assert!(ended.stderr.contains(said), "no {said:?} in {ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(!ended.stderr.contains("horse"), "{ended:?}");
}

fn state(data_dir: &DataDir, name: &str) -> Value {
    data_dir.json(&["account", "show", name])["state"].clone()
}

/// What the operator does from the first account to the last.
fn accounts_come_and_go(data_dir: &DataDir) {
    let created = create(data_dir, "Ann");
    assert_eq!(created.status, 0, "{created:?}");
    let said = "Ann is created and active, with the mail address Ann@mail.example\n";
    assert_eq!(created.stdout, said);
    let file = data_dir.file("passphrase", &format!("{PASSPHRASE}\n"));
    let bob = [
        "account",
        "create",
        "bob",
        "--mail",
        "bob@mail.example",
        "--role",
        "admin",
        "--passphrase-file",
        &file,
    ];
    let created = data_dir.json(&bob);
    assert_eq!(created["state"], "active");
    assert_eq!(created["role"], "admin");
    assert!(created["mail_verified_at_ms"].is_i64());
    assert!(!created.to_string().contains("horse") && created.get("passphrase").is_none());
    assert!(created["id"].as_str().unwrap().parse::<u64>().unwrap() > 1 << 32);

    refused(&create(data_dir, "ANN"), 2, "has that name; choose another");
    let taken = [
        "account",
        "create",
        "carl",
        "--mail",
        "ANN@mail.example",
        "--stdin",
    ];
    refused(
        &with_input(data_dir, &taken, PASSPHRASE),
        2,
        "that mail address",
    );
    let list = data_dir.json(&["account", "list"]);
    let names = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["Ann", "bob"]);
    let table = data_dir.run(&["account", "list"]).stdout;
    for shown in [
        "NAME",
        "LAST LOG-IN",
        "Ann@mail.example",
        "active",
        "admin",
        "never",
    ] {
        assert!(table.contains(shown), "no {shown} in {table}");
    }
    let shown = data_dir.run(&["account", "show", "ann"]).stdout;
    for said in ["Ann\n", "active, member", "follows 0", "last log-in never"] {
        assert!(shown.contains(said), "no {said} in {shown}");
    }

    for (command, expected, already) in [
        ("freeze", "frozen", false),
        ("freeze", "frozen", true),
        ("unfreeze", "active", false),
        ("unfreeze", "active", true),
        ("freeze", "frozen", false),
        ("silence", "silenced", false),
        ("activate", "active", false),
        ("approve", "active", true),
        ("silence", "silenced", false),
        ("freeze", "frozen", false),
        ("activate", "active", false),
    ] {
        let changed = data_dir.json(&["account", command, "ann"]);
        assert_eq!(changed["state"], expected, "{command}");
        assert_eq!(changed["changed"], !already, "{command}");
        assert_eq!(state(data_dir, "Ann"), expected);
    }
    data_dir.json(&["account", "silence", "ann"]);
    let unfrozen = data_dir.run(&["account", "unfreeze", "ann"]);
    refused(
        &unfrozen,
        2,
        "Ann is silenced and not frozen; nothing was changed",
    );
    data_dir.json(&["account", "activate", "ann"]);
    let again = data_dir.run(&["account", "activate", "ann"]);
    assert_eq!(again.stdout, "Ann is active already\n");
    let approved = data_dir.run(&["account", "approve", "ann"]);
    assert_eq!(approved.stdout, "Ann is active already\n");
    data_dir.json(&["account", "freeze", "ann"]);
    refused(
        &data_dir.run(&["account", "approve", "ann"]),
        2,
        "Ann does not wait for approval: it is frozen; nothing was changed",
    );
    data_dir.json(&["account", "activate", "ann"]);
    refused(
        &data_dir.run(&["account", "list", "--as", "ann"]),
        2,
        "leave --as out",
    );
    let no_id = data_dir.run(&["account", "tokens", "ann", "--revoke", "abc"]);
    assert_eq!(no_id.status, 2, "{no_id:?}");
    let hint = "`driftline account tokens NAME` shows the IDs";
    assert!(no_id.stderr.contains(hint), "{no_id:?}");

    let home = data_dir.run(&["account", "home", "ann"]).stdout;
    assert!(home.contains("no source as a whole"), "{home}");
    let unknown = data_dir.run(&["account", "home", "ann", "--add", "nothing"]);
    refused(&unknown, 2, "nothing");

    let reset = ["account", "reset-passphrase", "ann", "--stdin"];
    let changed = with_input(data_dir, &reset, "another good one");
    assert_eq!(
        changed.stdout, "Ann has another passphrase\n",
        "{changed:?}"
    );
    refused(
        &with_input(data_dir, &reset, "a   \t   b"),
        2,
        "shorter than 8",
    );

    let made = data_dir.json(&["account", "reset-passphrase", "bob", "--generate"]);
    let again = data_dir.run(&["account", "reset-passphrase", "bob", "--generate"]);
    let made = made["passphrase"].as_str().unwrap().to_owned();
    let shown = again.stdout.lines().nth(1).unwrap();
    let shown = shown
        .strip_prefix("its passphrase, shown this once: ")
        .unwrap();
    assert!(made != shown && made.len() == shown.len() && made.len() > 30);
    let bob = data_dir.run(&["--json", "account", "show", "bob"]);
    assert!(!bob.stdout.contains(shown) && !bob.stdout.contains("passphrase"));

    let delete = ["account", "delete", "ann"];
    let unasked = data_dir.run(&delete);
    refused(
        &unasked,
        2,
        "0 relations, 0 mutes and 0 objects of its library; nobody can be asked here: add --yes",
    );
    assert_eq!(state(data_dir, "ann"), "active");
    let deleted = data_dir.json(&[&delete[..], &["--yes"]].concat());
    assert_eq!(
        deleted,
        json!({ "name": "ann", "pending": false, "sources": 0, "posts": 0, "relations": 0, "mutes": 0, "objects": 0 })
    );
    for command in [
        "show", "freeze", "unfreeze", "silence", "activate", "approve", "delete",
    ] {
        let gone = data_dir.run(&["account", command, "ann"]);
        refused(&gone, 2, "there is no account named ann");
    }
    assert_eq!(create(data_dir, "ann").status, 0, "the name is free again");
}

#[test]
fn accounts_come_and_go_without_a_server() {
    let data_dir = DataDir::new();
    let none = data_dir.run(&["account", "list"]);
    refused(&none, 10, "there is no store");
    accounts_come_and_go(&data_dir);
}

#[test]
fn accounts_come_and_go_beside_a_server() {
    let data_dir = DataDir::new();
    let (_server, _) = data_dir.serve(&[]);
    let empty = data_dir.run(&["account", "list"]).stdout;
    assert!(empty.contains("no accounts yet"), "{empty}");
    accounts_come_and_go(&data_dir);
    assert!(!data_dir.log().contains("horse"));
}

#[test]
fn accounts_come_and_go_on_postgresql() {
    let url = driftline_store::testing::postgres_database();
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", &url);
    accounts_come_and_go(&data_dir);
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ups_that_are_not_verified_are_listed_and_deleted() {
    let data_dir = DataDir::new();
    data_dir.file("driftline.toml", "[accounts]\nsign_up = \"open\"\n");
    let (_server, base) = data_dir.serve(&[]);
    let pending = ["account", "list", "--pending"];
    let none = data_dir.run(&pending).stdout;
    assert_eq!(
        none,
        "no sign-up waits for its mail address to be verified\n"
    );
    let (status, page) = Browser::new(&base, "en").sign_up("dora", PASSPHRASE).await;
    assert_eq!(status, 200, "{page}");
    assert_eq!(data_dir.json(&["account", "list"]), json!([]));
    let rows = data_dir.json(&pending);
    assert_eq!(
        (
            &rows[0]["name"],
            &rows[0]["mail"],
            rows.as_array().unwrap().len()
        ),
        (&json!("dora"), &json!("dora@mail.example"), 1)
    );
    let listed = data_dir.run(&pending).stdout;
    assert!(listed.contains("dora@mail.example"), "{listed}");
    let delete = ["account", "delete", "dora"];
    let asked = data_dir.run(&delete);
    refused(&asked, 2, "the sign-up of dora would be deleted");
    let deleted = data_dir.run(&[&delete[..], &["--yes"]].concat());
    assert_eq!(deleted.stdout, "the sign-up of dora is deleted\n");
    assert_eq!(data_dir.json(&pending), json!([]));
    let gone = data_dir.run(&[&delete[..], &["--yes"]].concat());
    refused(
        &gone,
        2,
        "there is no account named dora, and nobody signs up under it",
    );
}

#[test]
fn what_cannot_be_an_account_makes_no_store() {
    let data_dir = DataDir::new();
    for (name, mail, said) in [
        ("a b", "ann@mail.example", "1 to 64"),
        ("アン", "ann@mail.example", "1 to 64"),
        ("..", "ann@mail.example", "1 to 64"),
        ("ann", "ann", "mail address"),
    ] {
        let ended = with_input(
            &data_dir,
            &["account", "create", name, "--mail", mail, "--stdin"],
            PASSPHRASE,
        );
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains(said), "{ended:?}");
    }
    let ann = ["account", "create", "ann", "--mail", "ann@mail.example"];
    refused(&with_input(&data_dir, &ann, PASSPHRASE), 2, "add --stdin");
    let from_stdin = [&ann[..], &["--stdin"]].concat();
    for short in ["1234567\n", "", "a   \t   b"] {
        let ended = with_input(&data_dir, &from_stdin, short);
        refused(&ended, 2, "shorter than 8");
    }
    let both = [&from_stdin[..], &["--generate"]].concat();
    assert_eq!(data_dir.run(&both).status, 2);
    let missing = data_dir.folder().join("nowhere").display().to_string();
    let from_file = [&ann[..], &["--passphrase-file", &missing]].concat();
    refused(&data_dir.run(&from_file), 2, "nowhere");
    // No option takes one: a list of processes would show it.
    let typed = [&ann[..], &["--passphrase", PASSPHRASE]].concat();
    assert_eq!(data_dir.run(&typed).status, 2);
    assert!(!data_dir.data().exists());
}

/// Types on a terminal of its own whatever it is asked, and says what the terminal showed. Afterwards the
/// terminal is asked for its settings.
#[cfg(target_os = "linux")]
fn on_a_terminal(data_dir: &DataDir, arguments: &[&str], answers: &[(&str, &str)]) -> String {
    let of = data_dir.command(arguments);
    let words = std::iter::once(of.get_program()).chain(of.get_args());
    let quoted = words.map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''")));
    let line = quoted.collect::<Vec<_>>().join(" ");
    let mut command = Command::new("script");
    command.args([
        "-qec",
        &format!("{line}; echo status=$?; stty -a"),
        "/dev/null",
    ]);
    for (name, value) in of.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(data_dir.folder());
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut shown = Vec::new();
    for (question, answer) in answers {
        let mut asked = Vec::new();
        while !asked.ends_with(question.as_bytes()) {
            let mut byte = [0];
            let read = stdout.read(&mut byte).unwrap();
            assert_ne!(
                read,
                0,
                "no {question:?} in {:?}",
                String::from_utf8_lossy(&asked)
            );
            asked.push(byte[0]);
        }
        shown.extend(asked);
        stdin.write_all(answer.as_bytes()).unwrap();
    }
    stdout.read_to_end(&mut shown).unwrap();
    drop(stdin);
    child.wait().unwrap();
    String::from_utf8(shown).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_passphrase_is_typed_twice_and_never_shown() {
    let data_dir = DataDir::new();
    let create = ["account", "create", "ann", "--mail", "ann@mail.example"];
    let typed = |answers: &[(&str, &str)]| {
        let shown = on_a_terminal(&data_dir, &create, answers);
        assert!(!shown.contains("horse"), "{shown}");
        let settings: Vec<&str> = shown.split_whitespace().collect();
        for set in ["echo", "isig", "icanon"] {
            assert!(
                settings.contains(&set),
                "the terminal is given back: {shown}"
            );
        }
        shown
    };
    let (first, again) = ("Passphrase: ", "Once more: ");
    let differ = typed(&[(first, "correct horse\n"), (again, "correct horses\n")]);
    assert!(differ.contains("the two passphrases differ") && differ.contains("status=2"));
    let short = typed(&[(first, "horse\n")]);
    assert!(short.contains("shorter than 8"), "{short}");
    for ended in ["correct hor\u{3}", "\u{4}", "correct horse\u{4}"] {
        let shown = typed(&[(first, ended)]);
        assert!(
            shown.contains("nothing was changed") && shown.contains("status=1"),
            "{shown}"
        );
    }
    assert!(!data_dir.data().exists());
    let created = typed(&[(first, "correct horse\n"), (again, "correct horse\n")]);
    assert!(created.contains("ann is created and active") && created.contains("status=0"));
}

#[test]
fn a_deletion_that_was_cut_short_is_gone_on_with() {
    use driftline_core::social::AccountName;
    use driftline_store::{
        Store, Target,
        social::{account_removal, local_account},
    };

    let data_dir = DataDir::new();
    assert_eq!(create(&data_dir, "ann").status, 0);
    let path = data_dir.data().join("driftline.db");
    let store = Store::open(Target::Sqlite { path }).unwrap();
    let name = AccountName::new("ann").unwrap();
    let found = store.read_blocking(move |tx| account_removal::find(tx, &name));
    let id = found.unwrap().unwrap();
    let begun = store.write_blocking(local_account::root(id), move |tx| {
        account_removal::begin(tx, id)
    });
    begun.unwrap();
    store.close_blocking();
    let show = data_dir.run(&["account", "show", "ann"]);
    refused(&show, 2, "there is no account named ann");
    let taken = create(&data_dir, "Ann");
    refused(
        &taken,
        2,
        "the deletion of the account Ann is not over; `driftline account delete Ann`",
    );
    assert_eq!(
        data_dir.run(&["account", "delete", "ann", "--yes"]).status,
        0
    );
    assert_eq!(create(&data_dir, "Ann").status, 0);
}
