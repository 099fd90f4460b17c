//! What every request passes before its route: name, log line, site check, key.

pub(crate) mod auth;
pub(crate) mod error_shape;
pub(crate) mod request_id;
pub(crate) mod site;
