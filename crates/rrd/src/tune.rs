//! `rrdtune(1)`: changes to a definition and its live head that leave the rows where they are.
