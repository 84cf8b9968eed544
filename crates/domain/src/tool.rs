//! A tool is a value: a name, words for the model, a schema, a safety level and an async function.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::agent::AgentName;
use crate::event::{CallId, Principal, SessionId, TurnId};
use crate::flow::{Label, LabeledText, OutgoingData};
use crate::session::SessionKey;

/// How much harm a call can do. What declares nothing counts as dangerous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Safety {
    /// Looks, and changes nothing.
    Safe,
    /// Changes something that can be taken back.
    Moderate,
    /// May destroy, spend, publish or reach other people.
    #[default]
    Dangerous,
}

/// Who calls. Identity comes with every call, so that no tool captures the rights of whoever built it.
#[derive(Clone, Debug)]
pub struct ToolContext {
    pub session: SessionId,
    pub principal: Principal,
    pub turn: TurnId,
    pub agent: AgentName,
    pub call: CallId,
    /// What the call was made from: a tool that keeps something keeps this with it (B101).
    pub label: Label,
    /// Where it shows what it prints while it runs.
    pub output_sink: ToolOutputSink,
}

impl ToolContext {
    pub fn session_key(&self) -> SessionKey {
        SessionKey {
            session: self.session.clone(),
            principal: self.principal.clone(),
        }
    }
}

/// Whoever watches a call while it runs. What is shown here is no part of the log.
#[derive(Clone, Default)]
pub struct ToolOutputSink(Option<OutputCallback>);

type OutputCallback = Arc<dyn Fn(&str) + Send + Sync>;

impl ToolOutputSink {
    pub fn new(watcher: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(watcher)))
    }

    pub fn disconnected() -> Self {
        Self(None)
    }

    pub fn send(&self, text: &str) {
        if let Some(watcher) = &self.0 {
            watcher(text);
        }
    }
}

impl fmt::Debug for ToolOutputSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Live(watched)"
        } else {
            "Live(unwatched)"
        })
    }
}

/// What a call would do, for whoever decides about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    pub level: Safety,
    /// Exactly what will happen: the command, the difference, the amount.
    pub shows: String,
    /// What rules are matched against: the command, the path.
    pub subject: String,
    /// Calls of this kind, for an answer that holds longer than once: `git *`.
    pub pattern: Option<String>,
}

/// Whose words a tool gives back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Lango's own.
    #[default]
    Own,
    /// Those of files, commands, pages: data, never instructions.
    Untrusted,
}

/// What a call gave back, for the model to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    pub text: String,
    /// Where the words come from, if the tool knows better than its declaration says.
    pub label: Option<Label>,
}

impl<T: Into<String>> From<T> for ToolOutput {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            label: None,
        }
    }
}

impl ToolOutput {
    pub fn from_labeled(LabeledText { text, label }: LabeledText) -> Self {
        Self {
            text,
            label: Some(label),
        }
    }
}

/// A call that did not work, said so that the model can do better next time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

/// What a call comes to.
pub type ToolFuture = BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// The function that says what a call would do, before it does it.
pub type IntentFunction =
    Arc<dyn Fn(ToolContext, Value) -> BoxFuture<'static, Result<Intent, ToolError>> + Send + Sync>;

/// The function that says what a call would send to somebody else; nothing for arguments that cannot work.
type OutgoingFunction = Arc<dyn Fn(&Value) -> Option<OutgoingData> + Send + Sync>;

/// The function that says of calls whether they only read, whatever the tool's level is.
type ReadOnlyFunction = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

/// The function behind a tool.
pub type ToolFunction = Arc<dyn Fn(ToolContext, Value) -> ToolFuture + Send + Sync>;

pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments, without references.
    pub parameters: Value,
    pub safety: Safety,
    /// Ways to ask for it, with places for its arguments: "read {path}". The offline model acts on nothing else.
    pub phrases: Vec<String>,
    pub trust: Trust,
    /// Gives back what is not meant for others.
    pub is_private: bool,
    outgoing: Option<OutgoingFunction>,
    read_only: Option<ReadOnlyFunction>,
    intent: Option<IntentFunction>,
    function: ToolFunction,
}

impl Tool {
    /// A tool whose parameters are the fields of `Args`; the doc comments of those fields describe them.
    pub fn new<Args, Run, Fut, Out>(
        name: impl Into<String>,
        description: impl Into<String>,
        safety: Safety,
        run: Run,
    ) -> Self
    where
        Args: DeserializeOwned + JsonSchema,
        Run: Fn(ToolContext, Args) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, ToolError>> + Send + 'static,
        Out: Into<ToolOutput>,
    {
        let run = Arc::new(run);
        let function: ToolFunction = Arc::new(move |context, args| {
            let run = Arc::clone(&run);
            Box::pin(async move {
                let args = parse_args(args)?;
                run(context, args).await.map(Into::into)
            })
        });
        let parameters = parameters_schema::<Args>();
        let (name, description, phrases) = (name.into(), description.into(), Vec::new());
        Self {
            name,
            description,
            parameters,
            safety,
            phrases,
            trust: Trust::Own,
            is_private: false,
            outgoing: None,
            read_only: None,
            intent: None,
            function,
        }
    }

    /// The same tool, with words about what each call would do. A call whose intent cannot be told does not run.
    #[must_use]
    pub fn with_intent<Args, Tell, Fut>(mut self, tell: Tell) -> Self
    where
        Args: DeserializeOwned,
        Tell: Fn(ToolContext, Args) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Intent, ToolError>> + Send + 'static,
    {
        let tell = Arc::new(tell);
        self.intent = Some(Arc::new(move |context, args| {
            let tell = Arc::clone(&tell);
            Box::pin(async move {
                let args = parse_args(args)?;
                tell(context, args).await
            })
        }));
        self
    }

    /// The same tool, giving back words of others.
    #[must_use]
    pub fn with_untrusted_output(mut self) -> Self {
        self.trust = Trust::Untrusted;
        self
    }

    /// The same tool, giving back what is not meant for others: files, memory, knowledge.
    #[must_use]
    pub fn with_private_output(mut self) -> Self {
        self.is_private = true;
        self
    }

    /// The same tool, with words about what each call would send to somebody else.
    #[must_use]
    pub fn with_outgoing<Args: DeserializeOwned>(
        mut self,
        tell: impl Fn(Args) -> OutgoingData + Send + Sync + 'static,
    ) -> Self {
        self.outgoing = Some(Arc::new(move |args| {
            serde_json::from_value(args.clone()).ok().map(&tell)
        }));
        self
    }

    /// The same tool, with a way to tell calls that have no effect, such as a command that lists files.
    #[must_use]
    pub fn with_read_only_calls(
        mut self,
        only_reads: impl Fn(&Value) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.read_only = Some(Arc::new(only_reads));
        self
    }

    /// Whether a call has no effect: it reads, and what it reads stays here.
    pub fn is_read_only(&self, args: &Value) -> bool {
        self.safety == Safety::Safe
            || self
                .read_only
                .as_ref()
                .is_some_and(|only_reads| only_reads(args))
    }

    /// What a call would send to somebody else; nothing for a tool that keeps everything here.
    pub fn outgoing(&self, args: &Value) -> Option<OutgoingData> {
        self.outgoing.as_ref().and_then(|outgoing| outgoing(args))
    }

    /// Whether calls send anything to somebody else.
    pub fn has_outgoing(&self) -> bool {
        self.outgoing.is_some()
    }

    /// The label of what a call gives back, unless its output says otherwise.
    pub fn label(&self, source: &str) -> Label {
        let mut label = Label::default();
        if self.trust == Trust::Untrusted {
            label.join(&Label::untrusted(source));
        }
        if self.is_private {
            label.join(&Label::private(source));
        }
        label
    }

    /// Whether its level depends on the call.
    pub fn has_intent(&self) -> bool {
        self.intent.is_some()
    }

    /// What a call would do; without words of its own, what it was called with.
    pub fn intent(
        &self,
        context: ToolContext,
        args: Value,
    ) -> BoxFuture<'static, Result<Intent, ToolError>> {
        if let Some(intent) = &self.intent {
            return intent(context, args);
        }
        let (subject, shows) = (args.to_string(), format!("{} {args:#}", self.name));
        let intent = Intent {
            level: self.safety,
            shows,
            subject,
            pattern: None,
        };
        Box::pin(std::future::ready(Ok(intent)))
    }

    /// The same tool, with ways to ask for it in words.
    #[must_use]
    pub fn with_phrases<const N: usize>(mut self, phrases: [&str; N]) -> Self {
        self.phrases = phrases.map(str::to_owned).to_vec();
        self
    }

    /// A tool that exists by name only, to see what a team with it would look like. Calling it fails.
    pub fn stub(name: impl Into<String>) -> Self {
        let name = name.into();
        let answer = format!("{name} is a stand-in and does nothing");
        Self {
            description: format!("A stand-in for {name}."),
            parameters: serde_json::json!({ "type": "object" }),
            safety: Safety::default(),
            phrases: Vec::new(),
            trust: Trust::Own,
            is_private: false,
            outgoing: None,
            read_only: None,
            intent: None,
            function: Arc::new(move |_, _| {
                let answer = answer.clone();
                Box::pin(async move { Err(ToolError(answer)) })
            }),
            name,
        }
    }

    /// The same tool with something around its function: whoever wraps decides whether the function runs.
    #[must_use]
    pub fn wrap_function(mut self, wrap: impl FnOnce(&str, ToolFunction) -> ToolFunction) -> Self {
        self.function = wrap(&self.name, self.function);
        self
    }

    /// The same tool with something around what tells its intent, where it has that.
    #[must_use]
    pub fn wrap_intent(
        mut self,
        wrap: impl FnOnce(&str, IntentFunction) -> IntentFunction,
    ) -> Self {
        self.intent = self.intent.map(|intent| wrap(&self.name, intent));
        self
    }

    pub fn call(&self, context: ToolContext, args: Value) -> ToolFuture {
        (self.function)(context, args)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("safety", &self.safety)
            .finish_non_exhaustive()
    }
}

fn parse_args<Args: DeserializeOwned>(args: Value) -> Result<Args, ToolError> {
    serde_path_to_error::deserialize(args)
        .map_err(|error| ToolError(format!("argument `{}`: {}", error.path(), error.inner())))
}

fn parameters_schema<Args: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<Args>();
    schema.remove("title");
    schema.to_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;

    #[derive(Deserialize, JsonSchema)]
    struct ReadFileArgs {
        /// Path relative to the workspace.
        path: String,
    }

    fn read() -> Tool {
        Tool::new(
            "fs_read",
            "Reads a file.",
            Safety::Safe,
            |_, args: ReadFileArgs| async move { Ok(format!("contents of {}", args.path)) },
        )
    }

    fn context() -> ToolContext {
        ToolContext {
            session: SessionId::new("s"),
            principal: Principal::local(),
            turn: TurnId::new("t1"),
            agent: AgentName::new("operator").unwrap(),
            call: CallId::new("c1"),
            label: Label::default(),
            output_sink: ToolOutputSink::disconnected(),
        }
    }

    #[test]
    fn argument_types_become_the_schema() {
        let parameters = read().parameters;
        assert_eq!(
            parameters["properties"]["path"]["description"],
            "Path relative to the workspace."
        );
        assert_eq!(parameters["required"], serde_json::json!(["path"]));
        assert!(parameters.get("$schema").is_none() && parameters.get("title").is_none());
    }

    #[test]
    fn a_call_reaches_the_function() {
        let output = block_on(read().call(context(), serde_json::json!({ "path": "a.txt" })));
        assert_eq!(output.unwrap().text, "contents of a.txt");
    }

    #[test]
    fn a_wrong_argument_is_a_failure_that_names_it() {
        let failure =
            block_on(read().call(context(), serde_json::json!({ "path": 7 }))).unwrap_err();
        assert!(failure.0.starts_with("argument `path`"), "{failure}");
    }

    #[test]
    fn a_call_can_say_what_it_would_do() {
        let args = serde_json::json!({ "path": "a.txt" });
        let plain = block_on(read().intent(context(), args.clone())).unwrap();
        assert_eq!(
            (plain.level, plain.subject.as_str()),
            (Safety::Safe, r#"{"path":"a.txt"}"#)
        );
        let told = read().with_intent(|_, args: ReadFileArgs| async move {
            let shows = format!("would read {}", args.path);
            Ok(Intent {
                level: Safety::Dangerous,
                shows,
                subject: args.path,
                pattern: None,
            })
        });
        let told = block_on(told.intent(context(), args)).unwrap();
        assert_eq!(
            (told.level, told.shows.as_str()),
            (Safety::Dangerous, "would read a.txt")
        );
    }

    #[test]
    fn what_declares_nothing_is_dangerous() {
        assert_eq!(Safety::default(), Safety::Dangerous);
        assert_eq!(Tool::stub("x").safety, Safety::Dangerous);
    }
}
