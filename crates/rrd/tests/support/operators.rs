//! Operators that both COMPUTE and CDEF have.

/// Replace one value by one.
pub const UNARY: [&str; 13] =
    ["SIN", "COS", "LOG", "EXP", "SQRT", "ATAN", "FLOOR", "CEIL", "ABS", "UN", "ISINF", "RAD2DEG", "DEG2RAD"];
/// Replace two values by one.
pub const BINARY: [&str; 18] = [
    "+", "-", "*", "/", "%", "ADDNAN", "LT", "LE", "GT", "GE", "EQ", "NE", "MIN", "MAX", "MINNAN", "MAXNAN",
    "ATAN2", "POW",
];
