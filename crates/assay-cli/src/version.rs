//! What this binary is: its build, and what it computes with on this machine.

use std::fmt;

use assay_kernels::Isa;
use assay_kernels::numerics::CONTRACT_VERSION;
use assay_server::PROMPT_FORMAT;
use serde::Serialize;

/// Printed by `assay --version` and `assay version`, with `--json` as one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Version {
    version: &'static str,
    /// With `-dirty` where files differed from it; `null` where it is not known.
    commit: Option<&'static str>,
    /// `release` or `debug`.
    pub(crate) profile: &'static str,
    target: &'static str,
    /// Version of the arithmetic contract: the same version, the same bits.
    numerics: &'static str,
    /// Version of how decisions are put into words.
    prompt_format: &'static str,
    /// Instruction set that this CPU is computed with, unless another is asked for.
    isa: &'static str,
    /// All that this CPU has.
    isas: Vec<&'static str>,
}

impl Version {
    pub(crate) fn read() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("BUILD_OF_ASSAY_COMMIT"),
            profile: env!("BUILD_OF_ASSAY_PROFILE"),
            target: env!("BUILD_OF_ASSAY_TARGET"),
            numerics: CONTRACT_VERSION,
            prompt_format: PROMPT_FORMAT,
            isa: Isa::detect().name(),
            isas: Isa::available().into_iter().map(Isa::name).collect(),
        }
    }

    /// Build alone: the same on every machine.
    pub(crate) fn build(&self) -> String {
        let Self {
            version,
            profile,
            target,
            ..
        } = self;
        let commit = self.commit.unwrap_or("unknown");
        format!("{version} (commit {commit}, {profile}, {target})")
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { isa, numerics, .. } = self;
        write!(
            formatter,
            "{}\ninstruction set {isa} (this CPU has {})\nnumerics {numerics}, prompt format {}",
            self.build(),
            self.isas.join(", "),
            self.prompt_format
        )
    }
}
