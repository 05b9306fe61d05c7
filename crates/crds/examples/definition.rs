//! Prints one definition as it is kept in `deploy/crds`, by the name of its file. `cargo xtask gen`
//! puts it there.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::process::ExitCode;

use sublet_crds::{all, file_name};

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let Some(definition) = all().into_iter().find(|one| file_name(one) == wanted) else {
        let names: Vec<_> = all().iter().map(file_name).collect();
        eprintln!("usage: definition {}", names.join("|"));
        return ExitCode::FAILURE;
    };
    match serde_saphyr::to_string(&definition) {
        Ok(text) => {
            print!("# Written by `cargo xtask gen` from crates/crds.\n{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
