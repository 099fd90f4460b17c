//! `GET /v1/about`.

use assay_api::about::{About, AboutKvCache, AboutModel};
use assay_receipt::Sha256Hex;
use axum::Json;
use axum::extract::State;

use crate::state::AppState;

pub(crate) async fn get(State(app): State<AppState>) -> Json<About> {
    let (config, identity) = (app.config(), app.identity());
    let info = app.engine().model_info();
    let hex = |hash: &Sha256Hex| hash.as_str().to_owned();
    Json(About {
        object: "about".to_owned(),
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        created: config.created,
        system_fingerprint: app.system_fingerprint().to_owned(),
        numerics: identity.numerics.clone(),
        profile: identity.profile.clone(),
        prompt_format: identity.prompt_format.clone(),
        template_date: identity.overrides.template_date.clone(),
        model: AboutModel {
            id: config.model_id.clone(),
            aliases: config.aliases.clone(),
            name: info.name.clone(),
            architecture: info.architecture.clone(),
            sha256: hex(&identity.model.sha256),
            tokenizer_sha256: hex(&identity.tokenizer_sha256),
            template_sha256: identity.template_sha256.as_ref().map(hex),
            max_model_len: u64::from(app.context_length()),
            vocab_size: info.vocab_size,
            file: config.installed.model.clone(),
        },
        kv_cache: AboutKvCache {
            element: identity.kv.clone(),
            block_tokens: info.kv_block_tokens,
            num_blocks: info.num_kv_blocks,
            block_bytes: config.installed.kv_block_bytes,
        },
        device: config.installed.device.clone(),
        receipts: config.receipts,
        ledger: config.ledger.is_some(),
    })
}
