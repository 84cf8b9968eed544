//! What it knows, as whoever asks sees it.

#[cfg(test)]
mod embedding;
#[cfg(test)]
mod fusion;
#[cfg(test)]
mod graph;
mod kept_vectors;
#[cfg(test)]
mod lexical;
#[cfg(test)]
mod library;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod web;
