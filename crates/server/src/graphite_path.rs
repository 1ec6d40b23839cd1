//! What data sources are called in Graphite, there (`forward`) and here (`http/graphite`): the directories and the name of the RRD
//! without `.rrd`, then the source, with dots between.

/// Appends the path of a source.
pub fn push_path(out: &mut Vec<u8>, name: &[u8], source: &str) {
    let name = name.strip_suffix(b".rrd").unwrap_or(name);
    let each = |byte: u8| if byte == b'/' { b'.' } else { node_byte(byte) };
    out.extend(name.iter().copied().map(each));
    out.push(b'.');
    out.extend(source.bytes().map(node_byte));
}

/// A byte of a node: what a path cannot hold, such as a dot in a name, becomes `_`.
pub fn node_byte(byte: u8) -> u8 {
    let is_kept = byte.is_ascii_alphanumeric() || b"-_:@%+#=".contains(&byte) || byte >= 0x80;
    if is_kept { byte } else { b'_' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_dots_only_between_its_parts() {
        for (name, source, want) in [
            ("net/sw1/port-3.rrd", "in", "net.sw1.port-3.in"),
            ("host.example.org/cpu.rrd", "user", "host_example_org.cpu.user"),
            ("a b/c;d=e", "x", "a_b.c_d=e.x"),
            ("plain", "value", "plain.value"),
        ] {
            let mut out = Vec::new();
            push_path(&mut out, name.as_bytes(), source);
            assert_eq!(String::from_utf8(out).unwrap(), want, "{name}");
        }
    }
}
