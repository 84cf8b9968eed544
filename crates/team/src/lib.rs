//! Who does what: agent definitions, the partition of tools, capabilities, prompts, and the tree built from them.
//!
//! Every fact about an agent comes from its markdown file; this crate only reads, deals out and words.

mod agent_file;
mod capability;
mod claims;
mod embedded;
mod files;
mod instruction;
mod partition;
mod prompts;
mod roster;
mod settings;
mod tree;

pub use agent_file::{AgentFileMistake, parse_agent_file};
pub use capability::{CapabilityMap, GENERAL_ACTIONS, capability_description, tool_capability};
pub use claims::{ClaimError, Claims, Routes};
pub use files::{MarkdownFile, MarkdownFolder, UnreadableFolder};
pub use instruction::{CONFUSABLE_WORDS, confusable_words, contains_word};
pub use partition::{RoleToolSet, partition_tools, tools_for_spec};
pub use prompts::{PromptSources, UnreadablePrompt, prompt_files};
pub use roster::{Roster, agent_files, one_tool_of_each_kind};
pub use settings::{Settings, TeamChoice};
pub use tree::{
    BuildError, Config, DEFAULT_DELEGATION_ROUNDS, RemoteCard, SubAgentPromptFunc, build_agent_tree,
};
