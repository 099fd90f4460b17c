//! `GET /`: the browser console, from assets built in. `console/` holds its source; `npm run build` there writes them.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;

const PAGE: &str = include_str!("../../assets/console/index.html");

/// Name, type and content of each part of the page.
const PARTS: [(&str, &str, &[u8]); 5] = [
    (
        "console.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/console/console.js"),
    ),
    (
        "console.css",
        "text/css; charset=utf-8",
        include_bytes!("../../assets/console/console.css"),
    ),
    (
        "sans.woff2",
        "font/woff2",
        include_bytes!("../../assets/console/sans.woff2"),
    ),
    (
        "mono.woff2",
        "font/woff2",
        include_bytes!("../../assets/console/mono.woff2"),
    ),
    (
        "fonts.txt",
        "text/plain; charset=utf-8",
        include_bytes!("../../assets/console/fonts.txt"),
    ),
];

/// The page takes its parts from here, asks nobody but this server, and runs no script that stands in its markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn page() -> Response {
    asset("text/html; charset=utf-8", PAGE.as_bytes())
}

pub(crate) async fn part(name: Result<Path<String>, PathRejection>) -> Result<Response, ApiError> {
    let Path(name) = name.map_err(|_| ApiError::UnknownRoute("that is not UTF-8".to_owned()))?;
    let part = PARTS.iter().find(|(known, ..)| *known == name);
    let (_, content_type, content) =
        part.ok_or_else(|| ApiError::UnknownRoute(assay_api::json::quote(&name)))?;
    Ok(asset(content_type, content))
}

fn asset(content_type: &'static str, content: &'static [u8]) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // Assets have no versions in their names: a new server's must be seen at once.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, content).into_response()
}
