mod crashes;
mod dying_store;
mod expressions;
mod files;
mod planning;
mod runs;
mod setup;
