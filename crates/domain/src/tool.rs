//! Tools: a name, a description for the model, a schema, a safety level and an async function.

mod arguments;
mod intent;
mod output_sink;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::agent::AgentName;
use crate::content::Content;
use crate::event::{CallId, Principal, SessionId, TurnId};
use crate::flow::{Label, LabeledText, OutgoingData};
use crate::secret_reference::{SecretField, SecretRedactor};
use crate::session::SessionKey;

use arguments::{parameters_schema, parse_args};
use intent::ReleaseFunction;
pub use intent::{Intent, IntentFunction};
pub use output_sink::ToolOutputSink;

/// The harm that a call can do. The default is dangerous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Safety {
    /// Reads, and changes nothing.
    Safe,
    /// Makes changes that can be undone.
    Moderate,
    /// May destroy data, spend money, publish, or contact other people.
    #[default]
    Dangerous,
}

/// The caller of a tool. It is passed with every call, so that no tool captures the rights of the code
/// that created it.
#[derive(Clone, Debug)]
pub struct ToolContext {
    pub session: SessionId,
    pub principal: Principal,
    pub turn: TurnId,
    pub agent: AgentName,
    pub call: CallId,
    /// The label of everything the call was derived from. A tool that stores something stores this with
    /// it (B101).
    pub label: Label,
    /// The web addresses in the requests that the user of this machine typed in this session. Empty for all
    /// other principals: they do not decide what this machine may reach.
    pub typed_addresses: Vec<String>,
    /// The sink for output while the tool runs.
    pub output_sink: ToolOutputSink,
    /// Removes the values of secrets. The engine redacts results and live output with it; a tool that
    /// writes or truncates output itself redacts it first.
    pub redactor: SecretRedactor,
}

impl ToolContext {
    pub fn session_key(&self) -> SessionKey {
        SessionKey {
            session: self.session.clone(),
            principal: self.principal.clone(),
        }
    }
}

/// The origin of a tool's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Text of Lango itself.
    #[default]
    Own,
    /// Content of files, commands or pages: data, never instructions.
    Untrusted,
}

/// The output of a call, as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    pub content: Content,
    /// The label of the content, if it differs from the tool's declaration.
    pub label: Option<Label>,
}

impl<T: Into<Content>> From<T> for ToolOutput {
    fn from(content: T) -> Self {
        Self {
            content: content.into(),
            label: None,
        }
    }
}

impl ToolOutput {
    pub fn from_labeled(LabeledText { text, label }: LabeledText) -> Self {
        Self {
            content: text.into(),
            label: Some(label),
        }
    }
}

/// The error of a call, phrased so that the model can correct the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

pub type ToolFuture = BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// Returns the data that a call would send out, or `None` for invalid arguments.
type OutgoingFunction = Arc<dyn Fn(&ToolContext, &Value) -> Option<OutgoingData> + Send + Sync>;

/// Returns true for calls that only read, whatever the tool's level is.
type ReadOnlyFunction = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

/// Returns the part of an output that programs read, such as what a command printed without its exit code.
pub type PlainResultFunction = fn(&str) -> &str;

/// The implementation of a tool.
pub type ToolFunction = Arc<dyn Fn(ToolContext, Value) -> ToolFuture + Send + Sync>;

pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments, without references.
    pub parameters: Value,
    pub safety: Safety,
    /// Phrases that request the tool, with placeholders for its arguments: "read {path}". The offline
    /// model acts on these only.
    pub phrases: Vec<String>,
    pub trust: Trust,
    /// True if the output is private.
    pub is_private: bool,
    /// The arguments in which references to secrets are resolved.
    pub secret_fields: Vec<SecretField>,
    /// True if an approval covers one call only.
    pub needs_single_approval: bool,
    outgoing: Option<OutgoingFunction>,
    read_only: Option<ReadOnlyFunction>,
    intent: Option<IntentFunction>,
    release: Option<ReleaseFunction>,
    plain_result: PlainResultFunction,
    function: ToolFunction,
}

impl Tool {
    /// Returns a tool whose parameters are the fields of `Args`, described by their doc comments.
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
            secret_fields: Vec::new(),
            needs_single_approval: false,
            outgoing: None,
            read_only: None,
            intent: None,
            release: None,
            plain_result: |output| output,
            function,
        }
    }

    /// Marks the output as untrusted.
    #[must_use]
    pub fn with_untrusted_output(mut self) -> Self {
        self.trust = Trust::Untrusted;
        self
    }

    /// Marks the output as private, as for files, memory and knowledge.
    #[must_use]
    pub fn with_private_output(mut self) -> Self {
        self.is_private = true;
        self
    }

    /// Sets the arguments in which references to secrets are resolved. A reference in any other
    /// argument is refused (B130).
    #[must_use]
    pub fn with_secret_fields<const N: usize>(mut self, fields: [SecretField; N]) -> Self {
        self.secret_fields = fields.to_vec();
        self
    }

    /// Makes every call that needs an approval ask for its own, also an equal one: each call has an effect of
    /// its own, such as a payment (B132).
    #[must_use]
    pub fn with_single_approval(mut self) -> Self {
        self.needs_single_approval = true;
        self
    }

    /// Sets the function that returns the data that a call would send out.
    #[must_use]
    pub fn with_outgoing<Args: DeserializeOwned>(
        self,
        outgoing: impl Fn(Args) -> OutgoingData + Send + Sync + 'static,
    ) -> Self {
        self.with_outgoing_in(move |_, args| Some(outgoing(args)))
    }

    /// Like [`Tool::with_outgoing`], for a tool whose recipient depends on the session. The function returns
    /// none for calls that send nothing.
    #[must_use]
    pub fn with_outgoing_in<Args: DeserializeOwned>(
        mut self,
        outgoing: impl Fn(&ToolContext, Args) -> Option<OutgoingData> + Send + Sync + 'static,
    ) -> Self {
        self.outgoing = Some(Arc::new(move |context, args| {
            let args = serde_json::from_value(args.clone()).ok()?;
            outgoing(context, args)
        }));
        self
    }

    /// Sets the function that returns the part of an output that programs read.
    #[must_use]
    pub fn with_plain_result(mut self, plain_result: PlainResultFunction) -> Self {
        self.plain_result = plain_result;
        self
    }

    /// Returns the function that returns the part of an output that programs read.
    pub fn plain_result(&self) -> PlainResultFunction {
        self.plain_result
    }

    /// Sets the function that recognizes calls without an effect, such as a command that lists files.
    #[must_use]
    pub fn with_read_only_calls(
        mut self,
        is_read_only: impl Fn(&Value) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.read_only = Some(Arc::new(is_read_only));
        self
    }

    /// Returns true if a call has no effect: it only reads, and sends nothing out.
    pub fn is_read_only(&self, args: &Value) -> bool {
        let read_only = self.read_only.as_ref();
        self.safety == Safety::Safe || read_only.is_some_and(|is_read_only| is_read_only(args))
    }

    /// Returns the data that a call would send out, or `None` if the tool sends nothing.
    pub fn outgoing(&self, context: &ToolContext, args: &Value) -> Option<OutgoingData> {
        let outgoing = self.outgoing.as_ref()?;
        outgoing(context, args)
    }

    /// Returns true if calls may send data out.
    pub fn has_outgoing(&self) -> bool {
        self.outgoing.is_some()
    }

    /// Returns the label of a call's output, unless the output has its own.
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

    /// Sets the phrases that request the tool.
    #[must_use]
    pub fn with_phrases<const N: usize>(mut self, phrases: [&str; N]) -> Self {
        self.phrases = phrases.map(str::to_owned).to_vec();
        self
    }

    /// Returns a tool that exists by name only, for inspecting a team that has it. Calling it fails.
    pub fn stub(name: impl Into<String>) -> Self {
        let name = name.into();
        let error = format!("{name} is a stub and does nothing");
        Self {
            description: format!("A stand-in for {name}."),
            parameters: serde_json::json!({ "type": "object" }),
            safety: Safety::default(),
            phrases: Vec::new(),
            trust: Trust::Own,
            is_private: false,
            secret_fields: Vec::new(),
            needs_single_approval: false,
            outgoing: None,
            read_only: None,
            intent: None,
            release: None,
            plain_result: |output| output,
            function: Arc::new(move |_, _| {
                let error = error.clone();
                Box::pin(async move { Err(ToolError(error)) })
            }),
            name,
        }
    }

    /// Wraps the function. The wrapper decides whether the function runs.
    #[must_use]
    pub fn wrap_function(mut self, wrap: impl FnOnce(&str, ToolFunction) -> ToolFunction) -> Self {
        self.function = wrap(&self.name, self.function);
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
            typed_addresses: Vec::new(),
            output_sink: ToolOutputSink::disconnected(),
            redactor: SecretRedactor::default(),
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
    fn a_call_runs_the_function() {
        let output = block_on(read().call(context(), serde_json::json!({ "path": "a.txt" })));
        assert_eq!(output.unwrap().content.text, "contents of a.txt");
    }

    #[test]
    fn a_wrong_argument_is_named_in_the_error() {
        let error = block_on(read().call(context(), serde_json::json!({ "path": 7 }))).unwrap_err();
        assert!(error.0.starts_with("argument `path`"), "{error}");
    }

    #[test]
    fn a_call_can_describe_its_intent() {
        let args = serde_json::json!({ "path": "a.txt" });
        let default = block_on(read().intent(context(), args.clone())).unwrap();
        assert_eq!(
            (default.level, default.subject.as_str()),
            (Safety::Safe, r#"{"path":"a.txt"}"#)
        );
        let tool = read().with_intent(|_, args: ReadFileArgs| async move {
            let shows = format!("would read {}", args.path);
            Ok(Intent {
                level: Safety::Dangerous,
                shows,
                subject: args.path,
                pattern: None,
            })
        });
        let intent = block_on(tool.intent(context(), args)).unwrap();
        assert_eq!(
            (intent.level, intent.shows.as_str()),
            (Safety::Dangerous, "would read a.txt")
        );
    }

    #[test]
    fn tools_are_dangerous_by_default() {
        assert_eq!(Safety::default(), Safety::Dangerous);
        assert_eq!(Tool::stub("x").safety, Safety::Dangerous);
    }
}
