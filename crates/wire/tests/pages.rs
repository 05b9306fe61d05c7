//! The examples of the error pages are real: the right status, and a body that our client reads.

use std::fs;
use std::path::Path;

use sublet_wire::decode::decode;
use sublet_wire::{Code, Problem};

fn page(code: Code) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    fs::read_to_string(folder.join(format!("{code}.md"))).expect("every code has a page")
}

#[test]
fn the_example_of_each_page_has_its_status_and_code() {
    for code in Code::ALL {
        let page = page(*code);
        let example = page.split("```http\n").nth(1).and_then(|rest| rest.split("```").next());
        let answer = example.and_then(|text| text.split("HTTP/1.1 ").nth(1)).expect("an answer");
        let (head, body) = answer.split_once("\n\n").expect("a head and a body");
        assert!(head.starts_with(&format!("{} ", code.status())), "{code}: {head}");
        assert!(head.contains(&format!("\nX-Sublet-Code: {code}")), "{code}");
        if head.contains("application/json") {
            let problem: Problem = decode(body.as_bytes()).expect(body);
            assert_eq!(problem.code(), Some(*code), "{code}");
            let seconds = problem.details.retry_after.map(|s| format!("\nRetry-After: {s}"));
            assert_eq!(head.contains("Retry-After"), seconds.is_some(), "{code}");
            assert!(seconds.is_none_or(|line| head.contains(&line)), "{code}");
        } else {
            assert_eq!(body.trim_end(), Problem::from(*code).error, "{code}");
        }
    }
}

#[test]
fn each_page_says_what_why_and_what_to_do() {
    for code in Code::ALL {
        let page = page(*code);
        let opening = format!("# {code}\n\nStatus {}. ", code.status());
        assert!(page.starts_with(&opening), "{code}");
        assert!(page.contains("\n## Why\n") && page.contains("\n## What to do\n"), "{code}");
    }
}
