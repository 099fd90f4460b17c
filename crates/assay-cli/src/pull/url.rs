//! A part that is a plain download: begun where the last attempt stopped, if the server can.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::http::header::{CONTENT_RANGE, RANGE};

use crate::progress;

use super::staging::Staging;

/// How long a server may take to be reached.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long it may take to begin its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Downloads what is missing of the part under way.
///
/// # Errors
/// If the server is not to be reached, refuses, or breaks off; what came stays for the next attempt.
pub(super) fn download(url: &str, label: &str, staging: &mut Staging) -> Result<()> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(ANSWER_TIMEOUT));
    let agent: Agent = config.build().into();
    let had = staging.part_bytes();
    let request = agent.get(url);
    let request = match had {
        0 => request,
        _ => request.header(RANGE, format!("bytes={had}-")),
    };
    let cannot = || format!("cannot download {url}");
    let mut response = request.call().with_context(cannot)?;
    let range = response.headers().get(CONTENT_RANGE);
    let range = range.and_then(|range| range.to_str().ok()).unwrap_or("");
    match response.status() {
        StatusCode::PARTIAL_CONTENT if range.starts_with(&format!("bytes {had}-")) => {}
        // There is nothing behind what is there: it was whole.
        StatusCode::RANGE_NOT_SATISFIABLE if range == format!("bytes */{had}") => return Ok(()),
        StatusCode::OK => staging.begin_part_anew()?,
        status => {
            staging.begin_part_anew()?;
            bail!("cannot download {url}: the server answered {status}; try again");
        }
    }
    let announced = response.body().content_length();
    let before = staging.part_bytes();
    let missing = staging.missing_bytes();
    let bar = progress::bytes_bar(label, before + announced.unwrap_or(missing));
    bar.set_position(before);
    let mut reader = response
        .body_mut()
        .with_config()
        .limit(missing.saturating_add(1))
        .reader();
    let copied = staging.copy_from(&mut reader, |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    copied.with_context(cannot)?;
    let came = staging.part_bytes() - before;
    if announced.is_some_and(|announced| came < announced) {
        bail!(
            "cannot download {url}: the connection broke off; what came is kept, and the same command goes on behind it"
        );
    }
    Ok(())
}
