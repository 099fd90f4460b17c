//! The machine: instruction set, arithmetic, threads, huge pages, devices.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use assay_kernels::cuda::{Cuda, CudaError};
use assay_kernels::numerics::CONTRACT_VERSION;
use assay_kernels::{Compute, Isa, ThreadPool, self_test};

use crate::config::{Device, ModelConfig};
use crate::system;

use super::{Check, Size};

pub(super) fn checks(config: &ModelConfig) -> Vec<Check> {
    vec![
        cpu(config.isa),
        numerics(config),
        threads(
            config.threads.get(),
            available_parallelism().map_or(1, NonZeroUsize::get),
            system::num_processors(),
            system::load_average(),
        ),
        huge_pages(system::huge_pages().as_deref()),
        gpu(&config.device),
    ]
}

fn cpu(isa: Isa) -> Check {
    let cpu = system::cpu_name().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let found = format!("{cpu}: computes with {}", isa.name());
    let best = Isa::detect();
    if isa != best {
        let advice = format!(
            "ASSAY_ISA asks for it; without, it would be {}",
            best.name()
        );
        return Check::warn("cpu", found, advice);
    }
    match isa.name() {
        "scalar" => Check::warn(
            "cpu",
            found,
            "this CPU lacks AVX2 with FMA and F16C (or a virtual machine hides them): answers are right and very slow",
        ),
        // The kernel or a container's filter refused what the CPU has.
        "avx512" if system::has_cpu_feature("amx_tile") => Check::warn(
            "cpu",
            found,
            "the CPU has AMX and Linux refuses its tiles: they need Linux 5.16 or later and arch_prctl allowed in the container",
        ),
        _ => Check::ok("cpu", found),
    }
}

fn numerics(config: &ModelConfig) -> Check {
    match self_test(&Compute::new(config.isa, ThreadPool::new(config.threads))) {
        Ok(()) => Check::ok(
            "numerics",
            format!("contract {CONTRACT_VERSION}: every recorded hash comes out on this CPU"),
        ),
        Err(error) => Check::fail(
            "numerics",
            error.to_string(),
            "answers of this machine would be wrong: none is given. Report it, with the output of `assay version`",
        ),
    }
}

/// `threads` wanted, `allowed` by affinity and control group, of `processors`.
fn threads(threads: usize, allowed: usize, processors: usize, load: Option<f64>) -> Check {
    let found = format!("{threads}, of {allowed} processors that this process may use");
    let found = match processors {
        // A machine that does not say, or that is ours whole.
        0 => found,
        _ if processors <= allowed => found,
        _ => format!("{found} (the machine has {processors})"),
    };
    if threads > allowed {
        let advice = format!(
            "more threads than processors wait for each other: leave --threads out, or give {allowed}"
        );
        return Check::warn("threads", found, advice);
    }
    match load {
        // Others already use half of what the threads need.
        Some(load) if load > allowed as f64 * 0.5 => Check::warn(
            "threads",
            format!("{found}; load average {load:.1}"),
            "others compute on this machine: answers are the same and slower",
        ),
        _ => Check::ok("threads", found),
    }
}

fn huge_pages(enabled: Option<&str>) -> Check {
    match enabled {
        None => Check::ok("huge pages", "this system does not tell"),
        Some("always") => Check::ok("huge pages", "always: weights may lie in large pages"),
        Some(other) => Check::ok(
            "huge pages",
            format!("{other}: weights lie in small pages; assay asks for no others"),
        )
        .with_advice(
            "a large model may be faster with `echo always > /sys/kernel/mm/transparent_hugepage/enabled`; `assay bench` tells",
        ),
    }
}

fn gpu(device: &Device) -> Check {
    let (ordinals, is_wanted) = match device {
        Device::Cpu | Device::Auto => (&[0][..], false),
        Device::Cuda(ordinals) => (&ordinals[..], true),
    };
    let opened: Result<Vec<_>, _> = ordinals
        .iter()
        .map(|&ordinal| Cuda::open(ordinal))
        .collect();
    match opened {
        Ok(opened) => {
            let described = opened.iter().map(|cuda| {
                let free = cuda.free_memory_bytes();
                let free = free.map_or(String::new(), |bytes| format!(", {} free", Size(bytes)));
                format!("{}{free}", cuda.name())
            });
            let described: Vec<String> = described.collect();
            let found = format!(
                "{}; every recorded hash comes out on it",
                described.join("; ")
            );
            match device {
                Device::Cpu => Check::ok("gpu", format!("{found}; not used"))
                    .with_advice("--device auto uses it"),
                _ => Check::ok("gpu", found),
            }
        }
        Err(error) if is_wanted => Check::fail(
            "gpu",
            error.to_string(),
            "mend it, or leave --device out: the CPU gives the same bits",
        ),
        Err(CudaError::NoDriver | CudaError::NoDevice { .. }) => {
            Check::ok("gpu", "none; the CPU computes")
        }
        Err(error) => Check::warn("gpu", error.to_string(), "it is not used; the CPU computes"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn threads_are_held_against_what_may_be_used() {
        for (wanted, allowed, processors, load, level, says) in [
            (2, 2, 2, Some(0.1), Level::Ok, "2, of 2"),
            (2, 2, 64, Some(0.1), Level::Ok, "the machine has 64"),
            (8, 2, 64, None, Level::Warn, "8, of 2"),
            (2, 2, 2, Some(3.0), Level::Warn, "load average 3.0"),
            (2, 2, 0, None, Level::Ok, "2, of 2"),
        ] {
            let check = threads(wanted, allowed, processors, load);
            assert_eq!(check.level, level, "{check:?}");
            assert!(check.found.contains(says), "{check:?}");
            assert_eq!(check.advice.is_some(), level != Level::Ok, "{check:?}");
        }
    }

    #[test]
    fn huge_pages_are_no_fault() {
        for enabled in [None, Some("always"), Some("madvise"), Some("never")] {
            assert_eq!(huge_pages(enabled).level, Level::Ok);
        }
        assert!(huge_pages(Some("never")).advice.is_some());
    }
}
