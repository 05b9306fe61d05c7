//! What every command has in common: help, completion, version, exit status.

use std::process::{Command, Stdio};

use crate::program::Person;

/// The names in the list of commands that `--help` prints.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = list.take_while(|line| !line.is_empty());
    // A line that goes on where the one before ended is indented further.
    let named = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_page_about_the_commands_names_every_one_of_them() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    let anna = Person::new();
    let mut missing = Vec::new();
    for command in commands(&anna.ok("--help")).into_iter().filter(|name| name != "help") {
        let inner = commands(&anna.ok(&format!("{command} --help")));
        let whole = inner.iter().filter(|name| *name != "help").map(|n| format!("{command} {n}"));
        let mut names: Vec<_> = whole.collect();
        if names.is_empty() {
            names.push(command);
        }
        missing.extend(names.into_iter().filter(|name| !page.contains(&format!("sublet {name}"))));
    }
    assert!(missing.is_empty(), "docs/cli.md does not show {missing:?}");
}

#[test]
fn the_page_has_the_exit_statuses_as_the_help_has_them() {
    let page = include_str!("../../../../docs/cli.md");
    let help = Person::new().ok("--help");
    let statuses = help.lines().skip_while(|line| *line != "Exit status:").skip(1);
    for line in statuses {
        let (status, meaning) = line.trim().split_once("  ").unwrap();
        assert!(
            page.contains(&format!("| {status} | {meaning} |")),
            "{line} is not in docs/cli.md"
        );
    }
}

#[test]
fn a_wrong_command_line_ends_with_2_and_names_what_is_wrong() {
    let anna = Person::new();
    anna.fails("demo --loud", 2, "--loud");
    anna.fails("lend", 2, "lend");
    anna.fails("fsck", 2, "<DIR>");
}

#[test]
fn every_shell_gets_its_completion() {
    let anna = Person::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = anna.ok(&format!("completion {shell}"));
        assert!(script.contains("restore") && script.contains("set-context"), "{shell}");
    }
}

#[test]
fn bash_understands_its_completion() {
    let anna = Person::new();
    std::fs::write(anna.path("sublet.bash"), anna.ok("completion bash")).unwrap();
    let line = "source sublet.bash && COMP_WORDS=(sublet fs) COMP_CWORD=1 && _sublet sublet fs sublet && echo ${COMPREPLY[@]}";
    let output = Command::new("bash").args(["-c", line]).current_dir(anna.path("")).output();
    let output = output.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "fsck\n", "{output:?}");
}

#[test]
fn the_version_is_for_people_and_for_scripts() {
    let anna = Person::new();
    let version = env!("CARGO_PKG_VERSION");
    assert!(anna.ok("version").starts_with(&format!("sublet {version} ")));
    assert_eq!(anna.ok("version -o name"), format!("{version}\n"));
    assert!(anna.ok("version -o yaml").contains("api: v1"));
    let json: serde_json::Value = serde_json::from_str(&anna.ok("version -o json")).unwrap();
    assert_eq!(json["version"], version);
}

#[test]
fn a_policy_file_is_checked_before_a_broker_gets_it() {
    let anna = Person::new();
    let sample = include_str!("../../../../docs/policy.sample.toml");
    std::fs::write(anna.path("good.toml"), sample).unwrap();
    assert!(anna.ok("policy check good.toml").contains("is a policy"));
    assert!(anna.ok("policy check good.toml -o json").contains("\"lending\""));
    std::fs::write(anna.path("bad.toml"), "durationn_max = \"1h\"\n").unwrap();
    anna.fails("policy check bad.toml", 7, "durationn_max");
    anna.fails("policy check none.toml", 4, "none.toml");
    std::fs::write(anna.path("large.toml"), " ".repeat((1 << 20) + 1)).unwrap();
    anna.fails("policy check large.toml", 7, "larger than");
    std::fs::write(anna.path("empty.toml"), "# strategy = \"cost\"\n").unwrap();
    assert!(anna.ok("policy check empty.toml").contains("everybody may do everything"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let anna = Person::new();
    let mut child = anna.command(&["completion", "bash"]).stdout(Stdio::piped()).spawn().unwrap();
    // Closed before anything is read: the first write that does not fit the pipe finds nobody.
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
