//! Tests of the dialects, of model selection and of reply limits.

#[cfg(test)]
mod decode;
#[cfg(test)]
mod encode;
#[cfg(test)]
mod endless;
#[cfg(test)]
mod selection;
#[cfg(test)]
mod setup;
