//! Names of instructions that are refused, as Python's documentation has them.

/// Instructions that make, call or find what is no number, text, tuple or list.
const FORBIDDEN: &[(u8, &str)] = &[
    (b'c', "GLOBAL"),
    (b'R', "REDUCE"),
    (b'b', "BUILD"),
    (b'i', "INST"),
    (b'o', "OBJ"),
    (b'P', "PERSID"),
    (b'Q', "BINPERSID"),
    (b'd', "DICT"),
    (b'}', "EMPTY_DICT"),
    (b's', "SETITEM"),
    (b'u', "SETITEMS"),
    (0x81, "NEWOBJ"),
    (0x82, "EXT1"),
    (0x83, "EXT2"),
    (0x84, "EXT4"),
    (0x8f, "EMPTY_SET"),
    (0x90, "ADDITEMS"),
    (0x91, "FROZENSET"),
    (0x92, "NEWOBJ_EX"),
    (0x93, "STACK_GLOBAL"),
    (0x96, "BYTEARRAY8"),
    (0x97, "NEXT_BUFFER"),
    (0x98, "READONLY_BUFFER"),
];

/// The name of an instruction that is refused.
pub(super) fn forbidden(byte: u8) -> Option<&'static str> {
    FORBIDDEN.iter().find(|(opcode, _)| *opcode == byte).map(|(_, name)| *name)
}
