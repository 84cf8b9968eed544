//! Tests of automation.
