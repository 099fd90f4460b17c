//! The key check, in front of every route but the probes.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::error::ApiError;
use crate::state::AppState;

/// Routes that hold no data and answer without a key.
const OPEN: [&str; 7] = [
    "/health",
    "/ready",
    "/openapi.json",
    "/docs",
    "/docs/page.css",
    "/docs/page.js",
    "/",
];

/// What the console at `/` is made of, which is the same for everybody.
const OPEN_FOLDER: &str = "/console/";

/// The keys, hashed, so that comparing takes the same time whatever a key's length or its first letters.
pub(crate) struct ApiKeys(Vec<[u8; 32]>);

impl ApiKeys {
    pub(crate) fn new(keys: &[String]) -> Self {
        Self(keys.iter().map(|key| digest(key.as_bytes())).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares with every key, also after one matched.
    fn allow(&self, key: &[u8]) -> bool {
        let given = digest(key);
        let none = Choice::from(0);
        let found = self.0.iter().fold(none, |any, key| any | key.ct_eq(&given));
        found.into()
    }
}

fn digest(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

pub(crate) async fn require_key(
    State(app): State<AppState>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let keys = app.keys();
    let path = request.uri().path();
    let open = keys.is_empty() || OPEN.contains(&path) || path.starts_with(OPEN_FOLDER);
    if open || given_key(request.headers()).is_some_and(|key| keys.allow(key)) {
        Ok(next.run(request).await)
    } else {
        Err(ApiError::Unauthorized)
    }
}

/// The bearer token, or the header that Anthropic's clients send.
fn given_key(headers: &HeaderMap) -> Option<&[u8]> {
    let own = || {
        headers
            .get("x-api-key")
            .map(|value| value.as_bytes().trim_ascii())
    };
    bearer(headers).or_else(own)
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, key) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| key.trim_ascii())
}
