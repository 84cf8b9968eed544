//! Network addresses that an untrusted URL may lead to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The set of addresses that a client may connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressPolicy {
    /// The public internet only: no loopback, private network or cloud metadata address.
    Public,
    /// Private networks too. Requires a setting or a URL of the user.
    Anywhere,
    /// The public internet and one more address, so that a test server can act as a public server.
    #[cfg(test)]
    PublicAnd(IpAddr),
}

impl AddressPolicy {
    pub(crate) fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Public => is_public(address),
            Self::Anywhere => true,
            #[cfg(test)]
            Self::PublicAnd(extra) => address == extra || is_public(address),
        }
    }
}

/// Returns true for addresses that are not on the public internet, such as those of this machine.
pub fn is_private_address(address: IpAddr) -> bool {
    !is_public(address)
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Address blocks that are not public, with their prefix lengths.
const RESERVED_V4: [(Ipv4Addr, u32); 16] = [
    // "This network", which many systems treat as the local host.
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Carrier-grade NAT; one cloud provider has its metadata server in it.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, including the metadata servers of most clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    // Azure's platform address: it looks public, but is reachable only from its own machines.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Protocol assignments; one cloud provider has its metadata server in it.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    // Reserved, up to the broadcast address.
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    !RESERVED_V4.iter().any(|(block, prefix)| {
        let mask = u32::MAX << (u32::BITS - prefix);
        address.to_bits() & mask == block.to_bits() & mask
    })
}

/// Returns true for global unicast addresses that are not for documentation, tunnels or tests. An
/// address that embeds an IPv4 address is as public as that one.
///
/// Invariant: an address that is not known to be public is not public.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(embedded) = embedded_v4(address) {
        return is_public_v4(embedded);
    }
    let [first, second, ..] = address.segments();
    let is_global_unicast = first & 0xe000 == 0x2000;
    // 2001::/23: Teredo, benchmarks, ORCHID and other protocol assignments.
    let is_for_protocols = first == 0x2001 && second < 0x200;
    let is_documentation =
        (first == 0x2001 && second == 0xdb8) || (first == 0x3fff && second < 0x1000);
    is_global_unicast && !is_for_protocols && !is_documentation
}

/// Returns the IPv4 address inside a mapped (`::ffff:0:0/96`), NAT64 (`64:ff9b::/96`), 6to4
/// (`2002::/16`) or ISATAP address. The compatible form (`::/96`) is not global unicast, so it is
/// never public.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from_halves =
        |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(from_halves(high, low))
        }
        [0x2002, high, low, ..] => Some(from_halves(high, low)),
        [first, _, _, _, 0 | 0x200, 0x5efe, high, low] if first & 0xe000 == 0x2000 => {
            Some(from_halves(high, low))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::{Host, Url};

    const PRIVATE: &str = "
        0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 100.100.100.200 127.0.0.1 127.255.0.1
        168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192
        192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.7
        224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
        :: ::1 fe80::1 febf::1 fec0::1 fc00::1 fd00:ec2::254 fdff::1 ff02::1 ff0e::1 100::1 2001:db8::1 3fff::1
        3fff:fff::1 2001::1 2001:0:4136:e378::1 2001:2::1 2001:10::1 2001:20::1 64:ff9b:1::1 5f00::1
        ::ffff:127.0.0.1 ::ffff:10.1.2.3 ::ffff:169.254.169.254 ::ffff:192.168.1.1 ::127.0.0.1 ::10.0.0.1 ::8.8.8.8
        64:ff9b::127.0.0.1 64:ff9b::169.254.169.254 64:ff9b::10.0.0.1 2002:7f00:1:: 2002:a00:1::1 2002:a9fe:a9fe::
        2002:c0a8:101::1 2a00:1450::5efe:10.0.0.1 2a00:1450::200:5efe:127.0.0.1";

    const PUBLIC: &str = "
        1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.0.1
        169.255.0.1 172.15.255.255 172.32.0.0 168.63.129.17 192.0.1.1 192.167.0.1 192.169.0.1 198.17.0.1 198.20.0.1
        223.255.255.255 2606:4700:4700::1111 2a00:1450:4001::200e 2001:4860:4860::8888 2001:200::1
        ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1";

    #[test]
    fn private_addresses_are_refused_in_every_form() {
        for text in PRIVATE.split_whitespace() {
            let address: IpAddr = text.parse().unwrap();
            assert!(!AddressPolicy::Public.allows(address), "{text}");
            assert!(AddressPolicy::Anywhere.allows(address), "{text}");
        }
        for text in PUBLIC.split_whitespace() {
            assert!(
                AddressPolicy::Public.allows(text.parse().unwrap()),
                "{text}"
            );
        }
    }

    #[test]
    fn url_parser_normalizes_every_spelling_of_an_address() {
        for text in [
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://127.1/",
            "http://127.0.1/",
            "http://127.0.0.1./",
            "http://%31%32%37.0.0.1/",
            "http://127。0。0。1/",
            "http://①②⑦.0.0.1/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:ffff:127.0.0.1]/",
            "http://[::1]/",
            "http://0/",
            "http://0xa9fea9fe/latest/meta-data",
        ] {
            let refused = match Url::parse(text).unwrap().host() {
                Some(Host::Ipv4(address)) => !AddressPolicy::Public.allows(address.into()),
                Some(Host::Ipv6(address)) => !AddressPolicy::Public.allows(address.into()),
                _ => false,
            };
            assert!(refused, "{text}");
        }
    }
}
