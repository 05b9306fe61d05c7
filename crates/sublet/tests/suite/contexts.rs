//! `sublet config`.

use crate::program::{Person, mode};

const FILE: &str = ".config/sublet/config.toml";

fn with_certificates() -> Person {
    let anna = Person::new();
    anna.ok("ca init --dir ca");
    anna.ok("ca issue anna --operator --dir ca --out anna");
    anna.ok("ca issue shop --dir ca --out shop");
    anna
}

#[test]
fn the_first_context_is_in_use_and_another_one_can_be() {
    let anna = with_certificates();
    assert_eq!(anna.ok("config set-context dev --cert-path anna"), "made context dev\n");
    assert_eq!(anna.ok("config current-context"), "dev\n");
    anna.ok("config set-context shop --cert-path shop --broker-url https://b1:8443 --broker-url https://b2:8443");
    assert_eq!(anna.ok("config current-context"), "dev\n");
    anna.ok("config use-context shop");
    let table = anna.ok("config get-contexts");
    let lines: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let at = |name: &str| anna.path(name).display().to_string();
    assert_eq!(lines[1], ["dev", "https://localhost:8443", &at("anna")]);
    assert_eq!(lines[2], ["*", "shop", "https://b1:8443,https://b2:8443", &at("shop")]);
    assert_eq!(mode(&anna.path(FILE)), 0o600);
}

#[test]
fn what_is_not_named_stays_as_it_was() {
    let anna = with_certificates();
    anna.ok("config set-context dev --cert-path anna");
    let changed = anna.ok("config set-context dev --broker-url https://other:8443");
    assert_eq!(changed, "changed context dev\n");
    let json: serde_json::Value =
        serde_json::from_str(&anna.ok("config get-contexts -o json")).unwrap();
    assert_eq!(json[0]["urls"][0], "https://other:8443");
    assert_eq!(json[0]["certificates"], anna.path("anna").display().to_string());
}

#[test]
fn a_deleted_context_is_gone_and_not_in_use() {
    let anna = with_certificates();
    anna.ok("config set-context dev --cert-path anna");
    anna.ok("config delete-context dev");
    anna.fails("config current-context", 4, "use-context");
    anna.fails("config use-context dev", 4, "set-context");
    anna.fails("config delete-context dev", 4, "no context dev");
}

#[test]
fn what_cannot_work_is_refused_before_it_is_written() {
    let anna = with_certificates();
    anna.fails("config set-context dev", 2, "--cert-path");
    anna.fails("config set-context dev --cert-path nowhere", 4, "nowhere/tls.crt");
    anna.fails("config set-context dev --cert-path anna --broker-url http://b", 2, "https://HOST");
    anna.fails("config set-context dev --cert anna/tls.crt", 2, "--key");
    assert!(!anna.path(FILE).exists());
}

#[test]
fn a_file_that_is_not_understood_says_where() {
    let anna = with_certificates();
    anna.ok("config set-context dev --cert-path anna");
    let text = anna.read(FILE).replace("urls", "url");
    std::fs::write(anna.path(FILE), text).unwrap();
    anna.fails("config get-contexts", 1, "unknown field `url`");
}

#[test]
fn the_file_is_where_the_environment_says() {
    let anna = with_certificates();
    let mut command = anna.command(&["config", "set-context", "dev", "--cert-path", "anna"]);
    let output = command.env("SUBLET_CONFIG", anna.path("own.toml")).output().unwrap();
    assert!(output.status.success());
    assert!(anna.read("own.toml").contains("[contexts.dev]"));
    assert!(!anna.path(FILE).exists());
}
