//! Which machine a figure is from.

use std::fs;

use serde::Serialize;

/// What a reader must know to compare figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Machine {
    /// The CPU's own name.
    pub(super) cpu: String,
    pub(super) cores: usize,
    pub(super) memory_gib: Option<u64>,
    pub(super) os: &'static str,
    pub(super) assay: &'static str,
}

impl Machine {
    pub(super) fn read() -> Self {
        let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self {
            cpu: cpu_name(&cpu_info).unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            memory_gib: memory_gib(&memory),
            os: std::env::consts::OS,
            assay: env!("CARGO_PKG_VERSION"),
        }
    }
}

fn cpu_name(cpu_info: &str) -> Option<String> {
    let line = cpu_info
        .lines()
        .find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.trim().to_owned())
}

/// Rounded up: the system keeps a little for itself.
fn memory_gib(memory: &str) -> Option<u64> {
    let line = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_files_are_read() {
        let info = "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nmodel name\t: other\n";
        assert_eq!(cpu_name(info).as_deref(), Some("A CPU @ 2 GHz"));
        assert_eq!(memory_gib("MemTotal:       24000000 kB\n"), Some(23));
        assert_eq!((cpu_name(""), memory_gib("")), (None, None));
    }
}
