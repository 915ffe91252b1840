//! Which proxy leads to an API server, as kubectl and every program in Go has it of the environment
//! (`golang.org/x/net/http/httpproxy`). The library's own reading holds `NO_PROXY` against the proxy, not the server.

use std::net::IpAddr;

use http::Uri;

/// The variables that count: of each pair the first that is not empty.
const HTTPS: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const HTTP: [&str; 2] = ["HTTP_PROXY", "http_proxy"];
const NONE: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The proxy that the environment has for a server; `None` for a direct way. `variable` reads the environment.
pub(super) fn of_environment(server: &Uri, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let first = |names: [&str; 2]| names.into_iter().filter_map(&variable).find(|value| !value.is_empty());
    let encrypted = server.scheme_str() == Some("https");
    let proxy = first(if encrypted { HTTPS } else { HTTP })?;
    let host = server.host()?.trim_matches(['[', ']']).to_ascii_lowercase();
    let port = server.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
    if is_direct(&host, port, &first(NONE).unwrap_or_default()) {
        return None;
    }
    Some(if proxy.contains("://") { proxy } else { format!("http://{proxy}") })
}

/// True if no proxy leads to that host: it is this machine, or the list names it.
fn is_direct(host: &str, port: u16, list: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    host == "localhost"
        || address.is_some_and(|address| address.is_loopback())
        || list.split(',').any(|entry| names(&entry.trim().to_ascii_lowercase(), host, address, port))
}

/// True if an entry of the list names the host: `*`, a network, or an address or domain with or without a port. A domain
/// covers what is below it, and one that begins with a dot or `*.` nothing else.
fn names(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/')
        && let (Ok(network), Ok(bits)) = (network.parse(), bits.parse())
    {
        return address.is_some_and(|address| is_within(address, network, bits));
    }
    let (name, only) = match entry.rsplit_once(':') {
        Some((name, digits)) if entry.parse::<IpAddr>().is_err() => (name, Some(digits)),
        _ => (entry, None),
    };
    if only.is_some_and(|only| only != port.to_string()) {
        return false;
    }
    let name = name.trim_matches(['[', ']']);
    if let Ok(named) = name.parse::<IpAddr>() {
        return address == Some(named);
    }
    let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
    match name.strip_prefix('.') {
        _ if name.is_empty() => false,
        Some(_) => host.ends_with(name),
        None => host == name || host.strip_suffix(name).is_some_and(|above| above.ends_with('.')),
    }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(server: &str, environment: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        of_environment(&server.parse().unwrap(), variable)
    }

    #[test]
    fn the_servers_scheme_says_which_variable_counts() {
        let both = [("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "http://p:2")];
        assert_eq!(proxy("https://api.example:6443", &both).as_deref(), Some("http://s:1"));
        assert_eq!(proxy("http://api.example", &both).as_deref(), Some("http://p:2"));
        assert_eq!(proxy("https://api.example", &[("HTTP_PROXY", "http://p:2")]), None);
        let cases = [("HTTPS_PROXY", ""), ("https_proxy", "p:2")];
        assert_eq!(proxy("https://api.example", &cases).as_deref(), Some("http://p:2"));
    }

    #[test]
    fn this_machine_needs_no_proxy() {
        for host in ["localhost:6443", "127.0.0.1", "127.1.2.3:1", "[::1]:6443"] {
            assert_eq!(proxy(&format!("https://{host}"), &[("HTTPS_PROXY", "http://p")]), None, "{host}");
        }
    }

    #[test]
    fn the_list_names_servers_that_need_none() {
        let api = "https://api.k8s.example:6443";
        let rows = [
            (api, "*", true),
            (api, "api.k8s.example", true),
            (api, "API.k8s.example", true),
            (api, "k8s.example", true),
            (api, "other, example ,", true),
            (api, ".k8s.example", true),
            (api, "*.example", true),
            (api, ".api.k8s.example", false),
            (api, "s.example", false),
            (api, "k8s.example:6443", true),
            (api, "k8s.example:443", false),
            (api, "", false),
            (api, ",", false),
            (api, ":6443", false),
            ("https://k8s.example", "k8s.example:443", true),
            ("https://10.1.2.3:6443", "10.0.0.0/8", true),
            ("https://10.1.2.3:6443", "10.1.2.3", true),
            ("https://10.1.2.3:6443", "10.1.2.3:6443", true),
            ("https://10.1.2.3:6443", "10.1.2.3:443", false),
            ("https://11.1.2.3:6443", "10.0.0.0/8,0.0.0.0/33", false),
            ("https://11.1.2.3:6443", "0.0.0.0/0", true),
            ("https://[fd00::7]:6443", "fd00::/8", true),
            ("https://[fd00::7]:6443", "fd00::7", true),
            ("https://[fd00::7]:6443", "[fd00::7]:6443", true),
            ("https://[fe00::7]:6443", "fd00::/16", false),
        ];
        for (server, list, direct) in rows {
            let found = proxy(server, &[("HTTPS_PROXY", "http://p"), ("NO_PROXY", list)]);
            assert_eq!(found.is_none(), direct, "{server} {list}");
        }
    }
}
