//! `assay replay`: the numbers of a receipt computed again, on this machine, from the model's file alone.
//!
//! The receipt is taken for hostile: its size is bounded, its hashes are checked before anything of it is used, and
//! every value in it goes through the engine's own checks.

mod verdict;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use assay_constrain::ConstraintFactory;
use assay_kernels::numerics::CONTRACT_VERSION;
use assay_models::Numerics;
use assay_receipt::{MAX_RECEIPT_BYTES, Receipt, Replay, ReplayError, SealError, open};
use clap::Args;

use crate::config::{ModelArgs, ModelConfig};
use crate::digest;
use crate::interrupt::Interrupt;
use crate::load::{self, Loaded};
use crate::terminal;

pub(crate) use verdict::Verdict;

/// Which receipt, and how to print what comes of it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReplayArgs {
    /// A receipt, or a reply that holds one; `-` for standard input
    #[arg(value_name = "RECEIPT")]
    receipt: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A receipt is not confirmed. What differs was printed.
#[derive(Debug, thiserror::Error)]
#[error("not identical")]
pub(crate) struct NotIdentical;

/// A receipt could not be computed again, so nothing is said of it.
#[derive(Debug, thiserror::Error)]
#[error("not replayed")]
pub(crate) struct NotReplayed;

/// Computes a receipt again and prints `identical`, or the first difference.
///
/// # Errors
/// [`NotIdentical`], or [`NotReplayed`] with what was in the way.
pub(crate) fn run(model: ModelArgs, args: &ReplayArgs, interrupt: &Interrupt) -> Result<()> {
    let text = read(&args.receipt).context(NotReplayed)?;
    let verdict = Replayer::new(model, interrupt)
        .replay(&text)
        .context(NotReplayed)?;
    let mut out = terminal::stdout();
    if args.json {
        writeln!(out, "{}", verdict.json())?;
    } else {
        writeln!(out, "{verdict}")?;
    }
    if verdict.is_identical() {
        Ok(())
    } else {
        Err(NotIdentical.into())
    }
}

/// The text of a receipt; one byte more than it may have at most.
fn read(path: &Path) -> Result<Vec<u8>> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(path);
        Box::new(file.with_context(|| format!("cannot read {}", path.display()))?)
    };
    let mut text = Vec::new();
    let limit = u64::try_from(MAX_RECEIPT_BYTES)? + 1;
    source
        .take(limit)
        .read_to_end(&mut text)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text)
}

/// Computes receipts of one model; a profile's engine is loaded when the first receipt of it comes.
pub(crate) struct Replayer {
    model: ModelArgs,
    interrupt: Interrupt,
    /// By profile.
    loaded: BTreeMap<&'static str, Loaded>,
    /// Of the file, as it was read for the first receipt.
    sha256: Option<String>,
}

impl Replayer {
    pub(crate) fn new(model: ModelArgs, interrupt: &Interrupt) -> Self {
        Self {
            model,
            interrupt: interrupt.clone(),
            loaded: BTreeMap::new(),
            sha256: None,
        }
    }

    /// Computes the receipt in `text` again.
    ///
    /// # Errors
    /// If the model is not to be had, the receipt has a form of another version, or the engine cannot run it.
    pub(crate) fn replay(&mut self, text: &[u8]) -> Result<Verdict> {
        let receipt = match open(text) {
            Ok(receipt) => receipt,
            Err(error @ SealError::Altered { .. }) => {
                return Ok(Verdict::broken("receipt_sha256", error.to_string()));
            }
            Err(error @ SealError::NotAReceipt(_)) => {
                return Ok(Verdict::broken("receipt", error.to_string()));
            }
            Err(error @ (SealError::TooLarge { .. } | SealError::OtherFormat { .. })) => {
                return Err(error.into());
            }
        };
        if receipt.numerics != CONTRACT_VERSION {
            return Ok(Verdict::different(
                "numerics",
                &receipt.numerics,
                CONTRACT_VERSION,
            ));
        }
        let numerics = match receipt.profile.as_str() {
            "exact" => Numerics::Exact,
            "fast" => Numerics::Fast,
            other => return Ok(Verdict::different("profile", other, "exact or fast")),
        };
        let mut config = self.model.clone().resolve()?;
        config.numerics = numerics;
        // What one sequence needs, and room for what forks from it: nothing else runs here.
        config.parallel = std::num::NonZeroUsize::MIN.saturating_add(1);
        if receipt.kv != config.kv.name() {
            return Ok(Verdict::different("kv", &receipt.kv, config.kv.name()));
        }
        // Before the file is trusted to be a model at all: a flipped byte may stand anywhere in it.
        let sha256 = self.file_sha256(&config)?;
        if receipt.model.sha256.as_str() != sha256 {
            let recorded = receipt.model.sha256.as_str();
            return Ok(Verdict::different("model.sha256", recorded, &sha256));
        }
        let loaded = self.loaded(&config)?;
        judge(&receipt, loaded)
    }

    fn file_sha256(&mut self, config: &ModelConfig) -> Result<String> {
        if let Some(sha256) = &self.sha256 {
            return Ok(sha256.clone());
        }
        let (_, path) = load::locate(config, &self.interrupt)?;
        let sha256 = digest::sha256_anew(&path, &config.cache_dir)?;
        self.sha256 = Some(sha256.clone());
        Ok(sha256)
    }

    fn loaded(&mut self, config: &ModelConfig) -> Result<&Loaded> {
        let profile = load::profile_name(config.numerics);
        if !self.loaded.contains_key(profile) {
            // A label request is one place in the queue, a request with choices as many.
            let loaded = load::load(config, QUEUE, &self.interrupt)?;
            self.loaded.insert(profile, loaded);
        }
        self.loaded
            .get(profile)
            .context("no engine of this profile")
    }
}

/// Places in the engine's queue; one request is under way at a time.
const QUEUE: usize = 1_024;

fn judge(receipt: &Receipt, loaded: &Loaded) -> Result<Verdict> {
    let replay = Replay {
        receipt,
        engine: &loaded.engine,
        constraints: &|| ConstraintFactory::new(&loaded.tokenizer),
        is_abandoned: &|| false,
    };
    let checked = Replay::check_identity(receipt, &loaded.identity).and_then(|()| replay.run());
    match checked {
        Ok(replayed) => Ok(Verdict::Identical(replayed)),
        Err(ReplayError::Different(difference)) => Ok(Verdict::Different(difference)),
        Err(ReplayError::Impossible { place, reason }) => Ok(Verdict::broken(&place, reason)),
        Err(error @ (ReplayError::Engine(_) | ReplayError::Abandoned | ReplayError::Failed(_))) => {
            bail!(error)
        }
    }
}
