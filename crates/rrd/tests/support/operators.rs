//! What the tests of COMPUTE and of CDEF share: operators that both have.

/// One value for one.
pub const UNARY: [&str; 13] =
    ["SIN", "COS", "LOG", "EXP", "SQRT", "ATAN", "FLOOR", "CEIL", "ABS", "UN", "ISINF", "RAD2DEG", "DEG2RAD"];
/// One value for two.
pub const BINARY: [&str; 18] = [
    "+", "-", "*", "/", "%", "ADDNAN", "LT", "LE", "GT", "GE", "EQ", "NE", "MIN", "MAX", "MINNAN", "MAXNAN",
    "ATAN2", "POW",
];
