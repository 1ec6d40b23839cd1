//! Who may read and write which RRDs: patterns of names, the rights that are made of them, and the tokens by which clients say who
//! they are. Texts and names in, decisions out.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod account;
#[doc(hidden)]
pub mod fuzzing;
mod paths;
mod rights;
mod tokens;

pub use account::{Account, check_name};
pub use paths::{Below, PathSet};
pub use rights::{Rates, Rights, Verb};
pub use tokens::{TokenHash, Tokens, token_text};
