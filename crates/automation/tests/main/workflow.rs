mod crashes;
mod expressions;
mod files;
mod planning;
mod runs;
mod setup;
