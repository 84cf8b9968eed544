//! Integration tests of the documents crate.

#[cfg(test)]
mod document_index;
#[cfg(test)]
mod embedding;
#[cfg(test)]
mod fusion;
#[cfg(test)]
mod lexical;
#[cfg(test)]
mod parse;
#[cfg(test)]
mod vector_file;
#[cfg(test)]
mod vectors;
