//! Tests of automation.

mod delivery;
