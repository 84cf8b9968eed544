//! The librarian's tools for the knowledge base (S83).

use lango_domain::knowledge::{
    EntrySaved, FailureCategory, KnowledgeCategory, Learning, LearningSaved, Provenance,
};
use lango_domain::{Intent, Label, LabeledText, Safety, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::entries::EntryInput;
use super::{KnowledgeBase, KnowledgeBaseError, entry_line};

const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 30;

pub fn tools(knowledge_base: &KnowledgeBase) -> Vec<Tool> {
    vec![
        save_knowledge(knowledge_base),
        search_knowledge(knowledge_base),
        save_learning(knowledge_base),
        search_learnings(knowledge_base),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct SaveKnowledgeArgs {
    /// A short name that the fact is found under again, as in "office hours". The same key with another content makes a new
    /// version. Made from the content if left out.
    key: Option<String>,
    #[schemars(description = "What kind of thing it is; a fact if left out.")]
    category: Option<KnowledgeCategory>,
    /// The fact itself, in whole sentences that can be understood on their own. Never passwords, keys or other secrets.
    content: String,
    /// Words to find it by.
    tags: Option<Vec<String>>,
}

fn save_knowledge(knowledge_base: &KnowledgeBase) -> Tool {
    let description = "Keeps a fact, rule, definition or preference for good, under a key. \
        Earlier versions stay in its history; keeping the same again changes nothing. \
        Secrets are refused.";
    let knowledge_base = knowledge_base.clone();
    Tool::new(
        "save_knowledge",
        description,
        Safety::Moderate,
        move |context, args: SaveKnowledgeArgs| {
            let knowledge_base = knowledge_base.clone();
            async move { run_save_knowledge(&knowledge_base, &context, args).await }
        },
    )
    .with_intent(|_, args: SaveKnowledgeArgs| async move {
        Ok(Intent {
            level: Safety::Moderate,
            shows: format!("keep for good: {}", args.content),
            subject: args.key.unwrap_or_default(),
            pattern: None,
        })
    })
    .with_phrases([
        "save (this|the) fact (that|) {content}",
        "save (this|that|the following) (as|to|in) [my] [the] (knowledge|facts) {content}",
        "save to [the] [my] knowledge that {content}",
        "(keep|note) the fact that {content}",
        "save [the] (knowledge|fact) {key:word} as {content}",
    ])
}

async fn run_save_knowledge(
    knowledge_base: &KnowledgeBase,
    context: &ToolContext,
    args: SaveKnowledgeArgs,
) -> Result<String, ToolError> {
    let input = EntryInput {
        key: args.key,
        category: args.category.unwrap_or_default(),
        content: args.content,
        tags: args.tags.unwrap_or_default(),
    };
    let saved = knowledge_base.save(&context.principal, input, provenance(context));
    Ok(match saved.await.map_err(tool_error)? {
        (key, EntrySaved::New) => format!("Kept as `{key}`."),
        (key, EntrySaved::Changed(version)) => {
            format!("Kept as version {version} of `{key}`; earlier versions stay in its history.")
        }
        (key, EntrySaved::Same(version)) => {
            format!("`{key}` already has this content (version {version}); nothing changed.")
        }
    })
}

#[derive(Deserialize, JsonSchema)]
struct SearchKnowledgeArgs {
    #[schemars(description = "What to look for, in the words of the question.")]
    query: String,
    /// Of this kind only.
    category: Option<KnowledgeCategory>,
    #[schemars(description = "How many, from 1 to 30; 10 if left out.")]
    limit: Option<usize>,
}

fn search_knowledge(knowledge_base: &KnowledgeBase) -> Tool {
    let description =
        "Finds facts, rules and preferences that were kept, by key, content, tags and category.";
    let knowledge_base = knowledge_base.clone();
    Tool::new(
        "search_knowledge",
        description,
        Safety::Safe,
        move |context, args: SearchKnowledgeArgs| {
            let knowledge_base = knowledge_base.clone();
            async move {
                let limit = check_search(&args.query, args.limit)?;
                let found =
                    knowledge_base.find(&context.principal, &args.query, args.category, limit);
                let found = found.await.map_err(tool_error)?;
                if found.is_empty() {
                    return Ok(ToolOutput::from(format!(
                        "Nothing is known about {}.",
                        args.query.trim()
                    )));
                }
                let text = found.iter().map(entry_line).collect::<Vec<_>>().join("\n");
                Ok(label_output(
                    text,
                    "knowledge",
                    found.iter().map(|entry| &entry.source),
                ))
            }
        },
    )
    .with_intent(|_, args: SearchKnowledgeArgs| async move { Ok(search_intent(args.query)) })
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "what do (you|we) know about {query}",
        "what is known about {query}",
        "(search|look in|look through) [the] [your] [my] knowledge (for|about) {query}",
        "(find|look up) {query} in [the] [your] [my] knowledge",
    ])
}

#[derive(Deserialize, JsonSchema)]
struct SaveLearningArgs {
    /// When it helps: the tool, and words of the error, as in "exec_shell: cargo cannot reach the registry".
    trigger: String,
    #[schemars(description = "What to do then.")]
    fix: String,
    #[schemars(description = "What kind of trouble it is.")]
    category: Option<FailureCategory>,
}

fn save_learning(knowledge_base: &KnowledgeBase) -> Tool {
    let description = "Keeps what helps when something fails. \
        Whoever meets that failure again is shown it; whether it helped decides how long. \
        Secrets are refused.";
    let knowledge_base = knowledge_base.clone();
    Tool::new(
        "save_learning",
        description,
        Safety::Moderate,
        move |context, args: SaveLearningArgs| {
            let knowledge_base = knowledge_base.clone();
            async move {
                let saved = knowledge_base.save_learning(
                    &context.principal,
                    (&args.trigger, &args.fix),
                    args.category.unwrap_or_default(),
                    provenance(&context),
                );
                Ok(match saved.await.map_err(tool_error)? {
                    LearningSaved::New(id) => format!("Kept as learning {id}."),
                    LearningSaved::Changed(id) => {
                        format!("Learning {id} has a new fix; its counts start again at zero.")
                    }
                    LearningSaved::Same(id) => {
                        format!("Learning {id} already has this fix; nothing changed.")
                    }
                })
            }
        },
    )
    .with_intent(|_, args: SaveLearningArgs| async move {
        let shows = format!("keep for good: when {}: {}", args.trigger, args.fix);
        Ok(Intent {
            level: Safety::Moderate,
            shows,
            subject: args.trigger,
            pattern: None,
        })
    })
    .with_phrases([
        "(save|keep|remember) (this|the) (fix|lesson|learning) when {trigger} then {fix}",
        "(save|keep|remember) the (fix|lesson|learning) for {trigger} (is to|is) {fix}",
        "(learn|note) that when {trigger} then {fix}",
    ])
}

#[derive(Deserialize, JsonSchema)]
struct SearchLearningsArgs {
    #[schemars(description = "What failed, or what it is about.")]
    query: String,
    /// Of this kind only.
    category: Option<FailureCategory>,
    #[schemars(description = "How many, from 1 to 30; 10 if left out.")]
    limit: Option<usize>,
}

fn search_learnings(knowledge_base: &KnowledgeBase) -> Tool {
    let description =
        "Finds what helped when something failed before, with how far it can be relied on.";
    let knowledge_base = knowledge_base.clone();
    Tool::new(
        "search_learnings",
        description,
        Safety::Safe,
        move |context, args: SearchLearningsArgs| {
            let knowledge_base = knowledge_base.clone();
            async move {
                let limit = check_search(&args.query, args.limit)?;
                let found = knowledge_base.find_learnings(
                    &context.principal,
                    &args.query,
                    args.category,
                    limit,
                );
                let found = found.await.map_err(tool_error)?;
                if found.is_empty() {
                    return Ok(ToolOutput::from(format!(
                        "Nothing was learned about {}.",
                        args.query.trim()
                    )));
                }
                let text = found
                    .iter()
                    .map(learning_line)
                    .collect::<Vec<_>>()
                    .join("\n");
                Ok(label_output(
                    text,
                    "learnings",
                    found.iter().map(|learning| &learning.source),
                ))
            }
        },
    )
    .with_intent(|_, args: SearchLearningsArgs| async move { Ok(search_intent(args.query)) })
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "what did (you|we) learn about {query}",
        "(search|look in|look through) [the] [your] (learnings|lessons|fixes) (for|about) {query}",
        "what (helped|helps) (when|with|against) {query}",
    ])
}

/// Formats a learning on one line.
fn learning_line(learning: &Learning) -> String {
    let Learning {
        id,
        trigger,
        fix,
        category,
        helped,
        failed,
        ..
    } = learning;
    let share = (learning.confidence() * 100.0).round();
    format!(
        "learning {id} ({category}, {share} %, helped {helped} of {} times) when {trigger}: {fix}",
        helped + failed
    )
}

/// Labels the output with the labels of all its sources.
fn label_output<'a>(
    text: String,
    store: &str,
    sources: impl Iterator<Item = &'a Provenance>,
) -> ToolOutput {
    let label = sources.fold(Label::private(store), |label, source| {
        label.joined(&source.label)
    });
    ToolOutput::from_labeled(LabeledText { text, label })
}

fn provenance(context: &ToolContext) -> Provenance {
    let (session, turn) = (Some(context.session.clone()), context.turn.clone());
    Provenance {
        session,
        turn,
        by: context.agent.to_string(),
        label: context.label.clone(),
    }
}

fn search_intent(query: String) -> Intent {
    Intent {
        level: Safety::Safe,
        shows: format!("look for {query}"),
        subject: query,
        pattern: None,
    }
}

fn check_search(query: &str, limit: Option<usize>) -> Result<usize, ToolError> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if query.trim().is_empty() || !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ToolError(format!(
            "`query` must not be empty and `limit` must be from 1 to {MAX_LIMIT}"
        )));
    }
    Ok(limit)
}

fn tool_error(error: KnowledgeBaseError) -> ToolError {
    ToolError(error.to_string())
}
