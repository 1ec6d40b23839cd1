//! Sets the library's soname and links the two functions that only C can define.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,librrd.so.8");
    println!("cargo::rerun-if-changed=src/variadic.c");
    cc::Build::new().file("src/variadic.c").warnings(true).compile("roundel_variadic");
}
