//! Links the parts of libgcc that unwinding needs into the executables. libgcc_s.so queries the processor
//! some twenty times when it is loaded; on a virtual machine each query leaves the guest, and a process that
//! lives for a millisecond takes 0.4 ms longer (measured with `rrdtool info`).

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// A linker script that replaces libgcc_s.so.
const LIBGCC: &str = "GROUP ( -lgcc_eh -lgcc )\n";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=ROUNDEL_FIXED_ADDRESS");
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") != "linux" || target("ENV") != "gnu" || target("FEATURE").contains("crt-static") {
        return Ok(());
    }
    if has_libgcc() {
        let place = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
        fs::write(place.join("libgcc_s.so"), LIBGCC)?;
        println!("cargo:rustc-link-search=native={}", place.display());
    }
    // `rrdtool` corrects 11,000 pointers at the start: a packed list of them takes 2 kB instead of 257. The list of `roundel` takes 2 MB
    // unpacked.
    if knows_relative_relocations() {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if env::var_os("ROUNDEL_FIXED_ADDRESS").is_some() {
        println!("cargo:rustc-link-arg-bin=rrdtool=-no-pie");
    }
    Ok(())
}

/// Whether this host's C library, which is to load the executable, reads that list: glibc 2.36 or newer. An older one refuses to
/// start the program.
fn knows_relative_relocations() -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    let Some((major, minor)) = version else { return false };
    let number = |text: &str| text.split('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    (number(major), number(minor)) >= (2u32, 36u32) && env::var_os("HOST") == env::var_os("TARGET")
}

/// Whether the linker finds those parts; assumed false when cross-compiling.
fn has_libgcc() -> bool {
    let asked = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    // For a file it does not have, it prints the bare name.
    let is_there = asked.is_ok_and(|output| output.stdout.starts_with(b"/"));
    is_there && env::var_os("HOST") == env::var_os("TARGET")
}
