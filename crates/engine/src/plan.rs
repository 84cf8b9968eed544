//! Plans the calls of one reply. Pure: decides ownership, names, arguments and order.

use std::collections::BTreeSet;

use lango_domain::event::ToolCode;
use lango_domain::markers::{REJECT_MARKER, TRANSFER_TOOL};
use lango_domain::model::ToolCall;
use lango_domain::{AgentName, TeamMode};

use crate::prepared_team::PreparedTeam;
use crate::transfer::{TransferRequest, resolve_agent};

/// Further calls of one reply are refused.
const MAX_CALLS_PER_REPLY: usize = 32;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallAction {
    /// Run one of the agent's own tools with valid arguments.
    Run(ToolCall),
    /// Answer the call without running it.
    Refuse {
        call: ToolCall,
        code: ToolCode,
        reason: String,
    },
    Delegate {
        call: ToolCall,
        to: AgentName,
        task: Option<String>,
        report_back: bool,
    },
    /// A specialist hands the task back with a call instead of a reply.
    HandBack {
        call: ToolCall,
        reason: Option<String>,
    },
}

/// The agent that made the calls, and its team.
pub(crate) struct CallPlanner<'a> {
    pub team: &'a PreparedTeam,
    pub agent: &'a AgentName,
    /// Specialists that rejected this request.
    pub rejecters: &'a BTreeSet<AgentName>,
}

impl CallPlanner<'_> {
    pub fn plan(&self, calls: Vec<ToolCall>) -> Vec<CallAction> {
        let mut actions: Vec<CallAction> =
            calls.into_iter().map(|call| self.classify(call)).collect();
        for action in actions.iter_mut().skip(MAX_CALLS_PER_REPLY) {
            refuse(action, "too many calls in one reply; make fewer at a time");
        }
        self.resolve_transfers(&mut actions);
        actions
    }

    fn is_orchestrator(&self) -> bool {
        self.agent == self.team.root() && self.team.mode() == TeamMode::Multi
    }

    fn classify(&self, call: ToolCall) -> CallAction {
        match (self.is_orchestrator(), call.name.as_str()) {
            (true, TRANSFER_TOOL) => self.transfer(call),
            (true, _) => self.routing_signal(call),
            (false, TRANSFER_TOOL) => self.hand_back(call),
            (false, _) => self.check_own_call(call),
        }
    }

    fn transfer(&self, call: ToolCall) -> CallAction {
        let request = TransferRequest::parse(&call.arguments);
        match resolve_agent(&request.agent, self.team.specialists()) {
            Some(to) if self.rejecters.contains(to) => CallAction::Refuse {
                call,
                code: ToolCode::NotRun,
                reason: format!(
                    "{to} already gave this request back; choose another agent or answer the user"
                ),
            },
            Some(to) => CallAction::Delegate {
                to: to.clone(),
                task: request.task,
                report_back: request.report_back,
                call,
            },
            None => CallAction::Refuse {
                call,
                code: ToolCode::Unknown,
                reason: format!(
                    "there is no agent `{:.60}`; the agents are {}",
                    request.agent,
                    self.agent_names()
                ),
            },
        }
    }

    /// Turns an orchestrator's call of a specialist's tool into a transfer to that specialist. The call
    /// itself is never made (B57).
    fn routing_signal(&self, call: ToolCall) -> CallAction {
        match self.team.owner(&call.name) {
            Some(owner) => {
                let call = ToolCall {
                    arguments: serde_json::json!({ "agent_name": owner }),
                    name: TRANSFER_TOOL.to_owned(),
                    ..call
                };
                self.transfer(call)
            }
            None => {
                let reason = format!(
                    "there is no tool `{:.60}`; you can transfer to {}",
                    call.name,
                    self.agent_names()
                );
                CallAction::Refuse {
                    call,
                    code: ToolCode::Unknown,
                    reason,
                }
            }
        }
    }

    fn hand_back(&self, call: ToolCall) -> CallAction {
        let request = TransferRequest::parse(&call.arguments);
        let root = self.team.root();
        if self.team.mode() == TeamMode::Multi && resolve_agent(&request.agent, [root]).is_some() {
            return CallAction::HandBack {
                call,
                reason: request.task,
            };
        }
        let reason = match self.team.mode() {
            TeamMode::Multi => format!(
                "you cannot transfer; reply `{REJECT_MARKER}` and why to give the task back to {root}"
            ),
            TeamMode::Single => "there is nobody to transfer to; do it yourself".to_owned(),
        };
        CallAction::Refuse {
            call,
            code: ToolCode::Unknown,
            reason,
        }
    }

    fn check_own_call(&self, call: ToolCall) -> CallAction {
        if self.team.tool(self.agent, &call.name).is_none() {
            let reason = match self.team.tool_names(self.agent).as_slice() {
                [] => format!("there is no tool `{:.60}`; you have none", call.name),
                own => format!(
                    "there is no tool `{:.60}` for you; yours are {}",
                    call.name,
                    own.join(", ")
                ),
            };
            return CallAction::Refuse {
                call,
                code: ToolCode::Unknown,
                reason,
            };
        }
        match self
            .team
            .check_arguments(self.agent, &call.name, &call.arguments)
        {
            Ok(()) => CallAction::Run(call),
            Err(error) => CallAction::Refuse {
                call,
                code: ToolCode::Arguments,
                reason: format!("wrong arguments: {error}"),
            },
        }
    }

    /// Refuses transfers that cannot be made now. Reports run first and in parallel; without reports,
    /// only the first transfer runs (B54).
    fn resolve_transfers(&self, actions: &mut [CallAction]) {
        let reports = actions.iter().any(|action| {
            matches!(
                action,
                CallAction::Delegate {
                    report_back: true,
                    ..
                }
            )
        });
        let mut has_transfer = false;
        for action in actions {
            let is_transfer = matches!(
                action,
                CallAction::Delegate {
                    report_back: false,
                    ..
                }
            );
            if !is_transfer {
                continue;
            }
            if reports {
                refuse(
                    action,
                    "the reports that you asked for come first; transfer again when you have read them",
                );
            } else if std::mem::replace(&mut has_transfer, true) {
                refuse(
                    action,
                    "one transfer at a time; use report_back when several specialists are needed",
                );
            }
        }
    }

    fn agent_names(&self) -> String {
        self.team
            .specialists()
            .map(AgentName::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Replaces an action by a refusal.
fn refuse(action: &mut CallAction, reason: &str) {
    let (CallAction::Run(call)
    | CallAction::Refuse { call, .. }
    | CallAction::Delegate { call, .. }
    | CallAction::HandBack { call, .. }) = action.clone();
    *action = CallAction::Refuse {
        call,
        code: ToolCode::NotRun,
        reason: format!("not run: {reason}"),
    };
}
