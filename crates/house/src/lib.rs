//! Nothing but tests, in `tests/`: the rules of the house that the compiler does not know.
