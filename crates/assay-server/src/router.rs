//! The server's table of contents.

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tower_http::cors::{AllowHeaders, Any, CorsLayer};
use tower_http::decompression::RequestDecompressionLayer;

use crate::error::ApiError;
use crate::ignored;
use crate::layers::{auth, error_shape, request_id, site};
use crate::routes;
use crate::state::AppState;

/// All routes, behind all layers; the last layer named is the first one passed.
pub fn router(app: AppState) -> Router {
    let mut router = Router::new()
        .route("/v1/chat/completions", post(routes::chat::create))
        .route("/v1/completions", post(routes::completions::create))
        .route("/v1/responses", post(routes::responses::create))
        .route("/v1/messages", post(routes::messages::create))
        .route(
            "/v1/messages/count_tokens",
            post(routes::messages::count_tokens),
        )
        .route("/v1/score", post(routes::score::create))
        .route(
            "/v1/decisions",
            post(routes::decisions::create).layer(decompression()),
        )
        .route(
            "/v1/decide",
            post(routes::decide::create).layer(decompression()),
        )
        .route(
            "/v1/systemone",
            post(routes::systemone::create).layer(decompression()),
        )
        .route("/tokenize", post(routes::tokenize::tokenize))
        .route("/detokenize", post(routes::tokenize::detokenize))
        .route("/apply-template", post(routes::tokenize::apply_template))
        .route("/tokenizer_info", get(routes::tokenize::info))
        .route("/v1/replay", post(routes::replay::create))
        .route("/v1/about", get(routes::about::get))
        .route("/v1/models", get(routes::models::list))
        .route("/v1/models/{*id}", get(routes::models::get))
        .route("/health", get(routes::health::health))
        .route("/ready", get(routes::health::ready))
        .route("/metrics", get(routes::metrics::get))
        .route("/openapi.json", get(routes::docs::openapi))
        .route("/docs", get(routes::docs::page))
        .route("/docs/page.css", get(routes::docs::style))
        .route("/docs/page.js", get(routes::docs::script))
        .route("/", get(routes::console::page))
        .route("/console/{file}", get(routes::console::part))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(app.clone(), auth::require_key))
        .layer(from_fn_with_state(app.clone(), site::refuse_foreign_sites));
    if let Some(cors) = cors(&app.config().cors_origins) {
        router = router.layer(cors);
    }
    router
        .layer(from_fn(request_id::name_requests))
        .layer(from_fn(error_shape::shape_errors))
        .with_state(app)
}

async fn unknown_route(request: Request) -> ApiError {
    ApiError::UnknownRoute(assay_api::json::quote(request.uri().path()))
}

async fn wrong_method(request: Request) -> ApiError {
    ApiError::WrongMethod(assay_api::json::quote(request.method().as_str()))
}

/// Takes gzip and zstd bodies; what comes out of them is bounded where it is read. Other encodings are refused there.
fn decompression() -> RequestDecompressionLayer {
    RequestDecompressionLayer::new().pass_through_unaccepted(true)
}

/// Off unless origins are named.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let origins: Vec<HeaderValue> = origins
        .iter()
        .filter_map(|origin| HeaderValue::from_str(origin).ok())
        .collect();
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods(Any)
        // A wildcard would leave out `Authorization`.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([request_id::X_REQUEST_ID, ignored::X_ASSAY_IGNORED]);
    Some(layer)
}
