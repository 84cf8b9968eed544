//! The loopback interface of a new network namespace, so that the processes of one command can
//! connect only to each other.

use rustix::io;
use rustix::net::{AddressFamily, SendFlags, SocketType, send, socket};

/// Brings the interface up. If that is not allowed, the command has no network at all.
pub fn bring_up() -> io::Result<()> {
    let route = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    send(&route, &set_up_request(), SendFlags::empty()).map(drop)
}

/// Builds the netlink request that sets the flag "up" of interface 1, which is always the loopback.
fn set_up_request() -> Vec<u8> {
    const LENGTH: u32 = 32;
    const NEW_LINK: u16 = 16;
    const REQUEST: u16 = 1;
    const LOOPBACK: u32 = 1;
    const UP: u32 = 1;
    let mut message = Vec::new();
    message.extend(LENGTH.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    // Sequence number and port: no reply is expected.
    message.extend([0; 8]);
    // Address family, padding and type of device: any.
    message.extend([0; 4]);
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message
}
