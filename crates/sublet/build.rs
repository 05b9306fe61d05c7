//! How the program is linked.
//!
//! Of a program that can be loaded anywhere, the loader reads a list of addresses to put right: half a
//! megabyte of memory in each agent. It has a short form, which glibc reads since 2.36.

use std::process::Command;

const SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if glibc().is_some_and(|version| version >= SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of the C library here, which is at least that of where the program is to run; none where
/// there is another one, or the program is for another kind of machine.
fn glibc() -> Option<(u32, u32)> {
    if told("HOST") != told("TARGET") || told("CARGO_CFG_TARGET_ENV") != "gnu" {
        return None;
    }
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[expect(clippy::disallowed_methods, reason = "that is how cargo talks to this program")]
fn told(what: &str) -> String {
    std::env::var(what).unwrap_or_default()
}
