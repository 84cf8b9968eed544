//! What it knows, as whoever asks sees it.

#[cfg(test)]
mod calls;
#[cfg(test)]
mod desk;
#[cfg(test)]
mod embedding;
#[cfg(test)]
mod forgetting;
#[cfg(test)]
mod fusion;
#[cfg(test)]
mod graph;
#[cfg(test)]
mod inquiries;
#[cfg(test)]
mod kept_vectors;
#[cfg(test)]
mod knowing;
#[cfg(test)]
mod labels;
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
