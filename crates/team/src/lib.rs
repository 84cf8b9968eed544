//! The team: agent definitions, the partition of tools, capabilities, prompts, and the agent tree.
//!
//! Every fact about an agent comes from its markdown file.

mod agent_file;
mod capability;
mod claims;
mod embedded;
mod instruction;
mod markdown_folder;
mod partition;
mod prompts;
mod registry;
mod settings;
mod tree;

pub use agent_file::{AgentFileError, parse_agent_file, with_hand_back};
pub use capability::{CapabilityMap, GENERAL_ACTIONS, capability_description, tool_capability};
pub use claims::{ClaimError, Routes, ToolClaims};
pub use instruction::{CONFUSABLE_WORDS, confusable_words, contains_word};
pub use markdown_folder::{MarkdownFile, MarkdownFolder, MarkdownFolderError};
pub use partition::{RoleToolSet, partition_tools, tools_for_spec};
pub use prompts::{PromptReadError, PromptSources, prompt_files};
pub use registry::{AgentRegistry, agent_files, sample_tool_names};
pub use settings::{TeamChoice, TeamSettings};
pub use tree::{
    BuildError, Config, DEFAULT_DELEGATION_ROUNDS, RemoteCard, SubAgentPromptFunc, build_agent_tree,
};
