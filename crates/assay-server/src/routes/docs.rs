//! `GET /openapi.json`: what the server says of itself. `GET /docs`: the same as a page, from assets built in.

use axum::http::header;
use axum::response::IntoResponse;

/// Made by `cargo xtask openapi`; a test compares it with the code.
const OPENAPI: &str = include_str!("../../../../docs/openapi.json");

const PAGE: &str = include_str!("../../assets/docs/page.html");
const STYLE: &str = include_str!("../../assets/docs/page.css");
const SCRIPT: &str = include_str!("../../assets/docs/page.js");

/// The page takes its parts and the document from here, and nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI)
}

pub(crate) async fn page() -> impl IntoResponse {
    asset("text/html; charset=utf-8", PAGE)
}

pub(crate) async fn style() -> impl IntoResponse {
    asset("text/css; charset=utf-8", STYLE)
}

pub(crate) async fn script() -> impl IntoResponse {
    asset("text/javascript; charset=utf-8", SCRIPT)
}

fn asset(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Assets have no versions in their names: a new server's must be seen at once.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text)
}
