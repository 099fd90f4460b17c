//! What Linux says of the machine, and what it lets this process have of it.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are mounted.
const CGROUPS: &str = "/sys/fs/cgroup";

/// The CPU's own name.
pub(crate) fn cpu_name() -> Option<String> {
    cpu_fact(&read("/proc/cpuinfo"), "model name")
}

/// Whether the CPU says that it has `feature`, as Linux spells it.
pub(crate) fn has_cpu_feature(feature: &str) -> bool {
    let flags = cpu_fact(&read("/proc/cpuinfo"), "flags").unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == feature)
}

/// All memory.
pub(crate) fn memory_bytes() -> Option<u64> {
    meminfo(&read("/proc/meminfo"), "MemTotal:")
}

/// Memory that this process can have without swapping, within the limit of its control group; `None` where the system
/// does not say.
pub(crate) fn available_memory_bytes() -> Option<u64> {
    let machine = meminfo(&read("/proc/meminfo"), "MemAvailable:");
    let group = group_memory_bytes(Path::new(CGROUPS), &read("/proc/self/cgroup"));
    machine.into_iter().chain(group).min()
}

/// Runnable threads of the machine, averaged over the last minute.
pub(crate) fn load_average() -> Option<f64> {
    let text = read("/proc/loadavg");
    text.split_whitespace().next()?.parse().ok()
}

/// Processors that the machine has, whether this process may use them or not.
pub(crate) fn num_processors() -> usize {
    let text = read("/proc/cpuinfo");
    let processors = text.lines().filter(|line| line.starts_with("processor"));
    processors.count()
}

/// Files and connections that this process may have open.
pub(crate) fn max_open_files() -> Option<usize> {
    soft_limit(&read("/proc/self/limits"), "Max open files")
}

/// `always`, `madvise` or `never`.
pub(crate) fn huge_pages() -> Option<String> {
    let text = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// Empty where there is no such file: other systems have none.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn cpu_fact(cpu_info: &str, name: &str) -> Option<String> {
    let line = cpu_info.lines().find(|line| line.starts_with(name))?;
    let (_, fact) = line.split_once(':')?;
    Some(fact.trim().to_owned())
}

fn meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn soft_limit(limits: &str, name: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(usize::MAX),
        number => number.parse().ok(),
    }
}

/// What the tightest of the control groups around this process leaves; `None` where none has a limit.
fn group_memory_bytes(mount: &Path, groups: &str) -> Option<u64> {
    let left = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next().unwrap_or_default();
        let path = fields.next().unwrap_or_default();
        let is_memory = controllers.split(',').any(|name| name == "memory");
        let (root, names) = match controllers {
            // One tree for all controllers, or one for each.
            "" => (mount.to_owned(), &UNIFIED),
            _ if is_memory => (mount.join("memory"), &SEPARATE),
            _ => return Vec::new(),
        };
        let own = root.join(path.trim_start_matches('/'));
        let around = own
            .ancestors()
            .take_while(|folder| folder.starts_with(&root));
        around
            .filter_map(|folder| left_in_group(folder, names))
            .collect()
    });
    left.min()
}

/// Files of a memory controller.
struct GroupFiles {
    limit: &'static str,
    used: &'static str,
    /// In `memory.stat`: files in memory that can go at once.
    cached: &'static str,
}

const UNIFIED: GroupFiles = GroupFiles {
    limit: "memory.max",
    used: "memory.current",
    cached: "inactive_file ",
};

const SEPARATE: GroupFiles = GroupFiles {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cached: "total_inactive_file ",
};

/// More bytes than any machine has: how the older controller spells no limit.
const NO_LIMIT: u64 = 1 << 60;

fn left_in_group(folder: &Path, names: &GroupFiles) -> Option<u64> {
    let number = |name| -> Option<u64> {
        let path: PathBuf = folder.join(name);
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    // `max` is no number.
    let limit = number(names.limit).filter(|limit| *limit < NO_LIMIT)?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let mut cached = stat
        .lines()
        .filter_map(|line| line.strip_prefix(names.cached));
    let cached: u64 = cached.next().and_then(|bytes| bytes.parse().ok())?;
    let used = number(names.used)?.saturating_sub(cached);
    Some(limit.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_files_are_read() {
        let info = "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nmodel name\t: other\n";
        assert_eq!(
            cpu_fact(info, "model name").as_deref(),
            Some("A CPU @ 2 GHz")
        );
        assert_eq!(cpu_fact("", "model name"), None);
        let memory = "MemTotal:       24000000 kB\nMemAvailable:   1 kB\n";
        assert_eq!(meminfo(memory, "MemTotal:"), Some(24_000_000 * 1024));
        assert_eq!(meminfo(memory, "MemAvailable:"), Some(1024));
        assert_eq!(meminfo("", "MemTotal:"), None);
        let limits = "Limit   Soft Limit  Hard Limit  Units\nMax open files            1024                 4096                 files\n";
        assert_eq!(soft_limit(limits, "Max open files"), Some(1024));
        assert_eq!(
            soft_limit("Max open files  unlimited  x", "Max open files"),
            Some(usize::MAX)
        );
        assert_eq!(soft_limit("", "Max open files"), None);
    }

    /// A tree of groups: each with these files.
    fn check_group(files: &[(&str, &str)], groups: &str, expected: Option<u64>) {
        let mount = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = mount.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(
            group_memory_bytes(mount.path(), groups),
            expected,
            "{groups}"
        );
    }

    #[test]
    fn the_tightest_group_around_counts_and_cached_files_can_go() {
        let unified = [
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "700\n"),
            ("a/memory.stat", "anon 400\ninactive_file 300\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "700\n"),
            ("a/b/memory.stat", "inactive_file 300\n"),
        ];
        check_group(&unified, "0::/a/b\n", Some(600));
        check_group(&unified, "0::/\n", None);
        check_group(&unified, "0::/elsewhere\n", None);
        let separate = [
            ("memory/c/memory.limit_in_bytes", "500"),
            ("memory/c/memory.usage_in_bytes", "900"),
            ("memory/c/memory.stat", "total_inactive_file 100\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712"),
            ("memory/memory.usage_in_bytes", "1"),
            ("memory/memory.stat", "total_inactive_file 0\n"),
        ];
        check_group(&separate, "4:cpu:/c\n5:memory,x:/c\n0::/\n", Some(0));
        check_group(&separate, "5:memory:/\n", None);
        check_group(&[], "", None);
    }
}
