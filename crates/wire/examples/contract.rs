//! Prints what is made from the contract: `openapi`, or the index of the `errors`. `cargo xtask gen`
//! puts both where they belong.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::process::ExitCode;

use sublet_wire::openapi;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("openapi") => print!("{}", openapi::text()),
        Some("errors") => print!("{}", openapi::error_index()),
        _ => {
            eprintln!("usage: contract openapi|errors");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
