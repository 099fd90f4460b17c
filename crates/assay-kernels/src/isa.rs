//! CPU detection. Holding an [`Isa`] value other than `Scalar` is the proof that the CPU has it:
//! values come only from [`Isa::detect`] and [`Isa::available`].

/// Instruction set of the kernels. The field is private to the crate so that a value proves support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isa(pub(crate) IsaKind);

/// The kinds behind [`Isa`], ascending by speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum IsaKind {
    /// Plain Rust with `f32::mul_add`; the meaning of every op.
    Scalar,
    /// AVX2 + FMA + F16C.
    Avx2,
    /// AVX-512 F/BW/DQ/VL/VBMI + VNNI (and everything of AVX2).
    Avx512,
    /// AMX tiles with BF16 products, for matmuls of many tokens; every other op is that of AVX-512.
    Amx,
}

impl Isa {
    /// The scalar reference; always available.
    pub const SCALAR: Self = Self(IsaKind::Scalar);

    /// Every instruction set this CPU has, slowest first.
    pub fn available() -> Vec<Self> {
        let mut kinds = vec![Self(IsaKind::Scalar)];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c");
            if avx2 {
                kinds.push(Self(IsaKind::Avx2));
            }
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vnni");
            if avx512 {
                kinds.push(Self(IsaKind::Avx512));
            }
            if avx512 && crate::x86::amx::is_available() {
                kinds.push(Self(IsaKind::Amx));
            }
        }
        kinds
    }

    /// The fastest instruction set of this CPU.
    pub fn detect() -> Self {
        Self::available().pop().unwrap_or(Self::SCALAR)
    }

    /// The instruction set called `name` (`scalar`, `avx2`, `avx512`, `amx`), if this CPU has it.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::available().into_iter().find(|isa| isa.name() == name)
    }

    /// `scalar`, `avx2`, `avx512` or `amx`.
    pub fn name(self) -> &'static str {
        match self.0 {
            IsaKind::Scalar => "scalar",
            IsaKind::Avx2 => "avx2",
            IsaKind::Avx512 => "avx512",
            IsaKind::Amx => "amx",
        }
    }
}
