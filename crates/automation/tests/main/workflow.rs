mod expressions;
mod files;
