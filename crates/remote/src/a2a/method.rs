//! The methods of the protocol and their JSON-RPC names.

use super::version::ProtocolVersion;

/// A method of the protocol, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum A2aMethod {
    SendMessage,
    StreamMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreatePushConfig,
    GetPushConfig,
    ListPushConfigs,
    DeletePushConfig,
    ExtendedCard,
}

impl A2aMethod {
    pub const ALL: [Self; 11] = [
        Self::SendMessage,
        Self::StreamMessage,
        Self::GetTask,
        Self::ListTasks,
        Self::CancelTask,
        Self::SubscribeToTask,
        Self::CreatePushConfig,
        Self::GetPushConfig,
        Self::ListPushConfigs,
        Self::DeletePushConfig,
        Self::ExtendedCard,
    ];

    /// Returns the method with this JSON-RPC name. The spelling of the name determines the version.
    pub fn from_rpc_name(name: &str) -> Option<(Self, ProtocolVersion)> {
        let find = |version| {
            Self::ALL
                .into_iter()
                .find(|method| method.name(version) == Some(name))
        };
        let v1 = find(ProtocolVersion::V1_0).map(|method| (method, ProtocolVersion::V1_0));
        v1.or_else(|| find(ProtocolVersion::V0_3).map(|method| (method, ProtocolVersion::V0_3)))
    }

    /// Returns the JSON-RPC name; none if the version does not have the method.
    pub fn name(self, version: ProtocolVersion) -> Option<&'static str> {
        let (v03, v1) = match self {
            Self::SendMessage => (Some("message/send"), "SendMessage"),
            Self::StreamMessage => (Some("message/stream"), "SendStreamingMessage"),
            Self::GetTask => (Some("tasks/get"), "GetTask"),
            Self::ListTasks => (None, "ListTasks"),
            Self::CancelTask => (Some("tasks/cancel"), "CancelTask"),
            Self::SubscribeToTask => (Some("tasks/resubscribe"), "SubscribeToTask"),
            Self::CreatePushConfig => (
                Some("tasks/pushNotificationConfig/set"),
                "CreateTaskPushNotificationConfig",
            ),
            Self::GetPushConfig => (
                Some("tasks/pushNotificationConfig/get"),
                "GetTaskPushNotificationConfig",
            ),
            Self::ListPushConfigs => (
                Some("tasks/pushNotificationConfig/list"),
                "ListTaskPushNotificationConfigs",
            ),
            Self::DeletePushConfig => (
                Some("tasks/pushNotificationConfig/delete"),
                "DeleteTaskPushNotificationConfig",
            ),
            Self::ExtendedCard => (
                Some("agent/getAuthenticatedExtendedCard"),
                "GetExtendedAgentCard",
            ),
        };
        match version {
            ProtocolVersion::V0_3 => v03,
            ProtocolVersion::V1_0 => Some(v1),
        }
    }

    /// Returns true if the response is a stream.
    pub fn is_streaming(self) -> bool {
        matches!(self, Self::StreamMessage | Self::SubscribeToTask)
    }
}
