//! Keeps web pages of other sites out of a server that listens on loopback without a key.
//!
//! A page may point a name of its own at 127.0.0.1 and so reach us past the browser's same-origin rule; such
//! requests carry that name in `Host`, or the page in `Origin`. Clients that are not browsers may omit both.

use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;

use crate::error::ApiError;
use crate::state::AppState;

pub(crate) async fn refuse_foreign_sites(
    State(app): State<AppState>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if app.config().loopback && app.keys().is_empty() {
        check(&request, &app.config().cors_origins)?;
    }
    Ok(next.run(request).await)
}

fn check(request: &Request, allowed_origins: &[String]) -> Result<(), ApiError> {
    let target = request.uri().authority().map(|target| target.as_str());
    let hosts = request.headers().get_all(header::HOST).iter();
    let named = hosts.map(|host| host.to_str().unwrap_or("")).chain(target);
    for host in named {
        if !is_local(host) {
            return Err(ApiError::ForeignSite("Host"));
        }
    }
    for origin in request.headers().get_all(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or("");
        let host = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        let allowed = allowed_origins.iter().any(|allowed| allowed == origin);
        if !allowed && !host.is_some_and(is_local) {
            return Err(ApiError::ForeignSite("Origin"));
        }
    }
    Ok(())
}

/// Whether `host`, maybe with a port, names this machine.
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || {
        let address = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name);
        address
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn local_names() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.8.9.1:1",
            "[::1]",
            "[::1]:8080",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "192.168.0.1",
            "localhost:80:80",
            "user@localhost",
            "[::2]:80",
            "0.0.0.0:80",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
