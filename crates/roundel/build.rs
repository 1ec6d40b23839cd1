//! How the executable is linked, so that a process that lives for a millisecond starts in less (measured, `rrdtool info`
//! on a virtual machine, where Debian's takes 4.0 ms):
//!
//! | | ms |
//! |---|---|
//! | position independent, libgcc_s.so | 1.9 |
//! | position independent, libgcc inside | 1.5 |
//! | at a fixed address, libgcc inside | 1.2 |
//!
//! libgcc_s.so asks the processor some twenty times what it is, and each of these leaves the virtual machine. A position
//! independent executable has 34,000 addresses to set and 130 pages to copy for it. What it would be good for, to make
//! an attack on memory harder, is left to the heap, the stack and the libraries, which are moved all the same;
//! `ROUNDEL_PIE=1` builds one where that is policy.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// What stands in for the shared library of that name: the parts of the compiler's own library that are linked in.
const LIBGCC: &str = "GROUP ( -lgcc_eh -lgcc )\n";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=ROUNDEL_PIE");
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") != "linux" || target("ENV") != "gnu" || target("FEATURE").contains("crt-static") {
        return Ok(());
    }
    if has_libgcc() {
        let place = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
        fs::write(place.join("libgcc_s.so"), LIBGCC)?;
        println!("cargo:rustc-link-search=native={}", place.display());
    }
    if env::var_os("ROUNDEL_PIE").is_none() {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    Ok(())
}

/// Whether the linker finds those parts; a compiler for another system is not asked.
fn has_libgcc() -> bool {
    let asked = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    // A file that it does not have it calls by its bare name.
    let is_there = asked.is_ok_and(|output| output.stdout.starts_with(b"/"));
    is_there && env::var_os("HOST") == env::var_os("TARGET")
}
