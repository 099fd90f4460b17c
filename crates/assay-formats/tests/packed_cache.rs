//! The packed cache: what was written is read back; anything else is refused by name, and never trusted.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use assay_formats::DType;
use assay_formats::packed_cache::{
    CHUNK_BYTES, CacheError, CacheKey, CacheSummary, PackedCache, Part, write,
};

const SHA256: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const KEY: CacheKey<'_> = CacheKey {
    model_sha256: SHA256,
    numerics: "n1",
    layout: 7,
};

/// A folder with a model in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("m.gguf"), b"model").expect("a model");
        Folder(dir)
    }

    fn model(&self) -> PathBuf {
        self.0.path().join("m.gguf")
    }

    fn cache(&self) -> PathBuf {
        self.0.path().join("m.gguf.assay-packed")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry.expect("an entry")))
            .collect();
        names.sort();
        names
    }

    fn write(&self, data: &[Vec<u8>]) -> Result<(), CacheError> {
        let slices: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        write(&self.cache(), &self.model(), &KEY, &parts(data), &slices)
    }
}

fn parts(data: &[Vec<u8>]) -> Vec<Part<'static>> {
    let part = |(index, bytes): (usize, &Vec<u8>)| Part {
        name: ["a", "b", "c"][index],
        dtype: DType::Q4_1,
        rows: 16,
        columns: 32,
        bytes: bytes.len(),
    };
    data.iter().enumerate().map(part).collect()
}

fn small() -> Vec<Vec<u8>> {
    vec![(0..100).collect(), (100..160).collect()]
}

/// Everything in the cache, or why not.
fn read_all(
    path: &Path,
    key: &CacheKey<'_>,
    parts: &[Part<'_>],
) -> Result<Vec<Vec<u8>>, CacheError> {
    let Some(cache) = PackedCache::open(path, key, parts)? else {
        return Err(CacheError::NotACache);
    };
    let mut all = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let mut bytes = vec![0; part.bytes];
        for (chunk, out) in bytes.chunks_mut(CHUNK_BYTES).enumerate() {
            cache.read_chunk(index, chunk, out)?;
        }
        all.push(bytes);
    }
    Ok(all)
}

#[test]
fn what_was_written_is_read_back() {
    let folder = Folder::new();
    let large = (0..2 * CHUNK_BYTES + 5).map(|i| (i * 7) as u8).collect();
    let data = vec![vec![1; 10], large, vec![2; CHUNK_BYTES]];
    for _ in 0..2 {
        folder.write(&data).expect("written");
        let read = read_all(&folder.cache(), &KEY, &parts(&data)).expect("read");
        assert!(read == data, "the bytes differ");
    }
    assert_eq!(folder.names(), ["m.gguf", "m.gguf.assay-packed"]);
    let summary = CacheSummary::read(&folder.cache()).expect("readable");
    let summary = summary.expect("a cache");
    assert_eq!((summary.model_sha256.as_str(), summary.layout), (SHA256, 7));
    assert_eq!((summary.numerics.as_str(), summary.num_parts), ("n1", 3));
    assert_eq!(CacheSummary::read(&folder.model()).expect("readable"), None);
}

#[test]
fn a_changed_byte_anywhere_is_refused() {
    let folder = Folder::new();
    folder.write(&small()).expect("written");
    let good = fs::read(folder.cache()).expect("the cache");
    for at in 0..good.len() {
        for mask in [1, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= mask;
            fs::write(folder.cache(), bad).expect("written");
            let read = read_all(&folder.cache(), &KEY, &parts(&small()));
            assert!(read.is_err(), "byte {at} ^ {mask:#x} is accepted");
        }
    }
    fs::write(folder.cache(), good).expect("written");
    assert!(read_all(&folder.cache(), &KEY, &parts(&small())).is_ok());
}

#[test]
fn a_cut_or_a_longer_file_is_refused() {
    let folder = Folder::new();
    folder.write(&small()).expect("written");
    let mut bytes = fs::read(folder.cache()).expect("the cache");
    for len in 0..bytes.len() {
        fs::write(folder.cache(), &bytes[..len]).expect("written");
        let read = read_all(&folder.cache(), &KEY, &parts(&small()));
        assert!(read.is_err(), "cut at {len}");
        let _ = CacheSummary::read(&folder.cache()).expect("readable");
    }
    bytes.push(0);
    fs::write(folder.cache(), &bytes).expect("written");
    let error = read_all(&folder.cache(), &KEY, &parts(&small())).expect_err("longer");
    assert!(matches!(error, CacheError::Length { .. }), "{error}");
}

#[test]
fn another_model_version_or_matrix_is_named() {
    let folder = Folder::new();
    folder.write(&small()).expect("written");
    let refusal = |key: &CacheKey<'_>, parts: &[Part<'_>]| {
        let error = read_all(&folder.cache(), key, parts).expect_err("another");
        error.to_string()
    };
    let model_sha256 = &SHA256.replace("00", "01");
    let other_model = refusal(
        &CacheKey {
            model_sha256,
            ..KEY
        },
        &parts(&small()),
    );
    assert!(other_model.contains("another model"), "{other_model}");
    for key in [
        CacheKey { layout: 8, ..KEY },
        CacheKey {
            numerics: "n2",
            ..KEY
        },
    ] {
        let text = refusal(&key, &parts(&small()));
        assert!(text.contains("another version"), "{text}");
    }
    let changes: [fn(&mut Part<'static>); 4] = [
        |part| part.name = "z",
        |part| part.dtype = DType::Q4_0,
        |part| part.rows += 1,
        |part| part.bytes += 1,
    ];
    for change in changes {
        let mut parts = parts(&small());
        change(&mut parts[1]);
        let text = refusal(&KEY, &parts);
        assert!(text.contains("damaged"), "{text}");
    }
}

#[test]
fn only_a_regular_file_is_opened() {
    let folder = Folder::new();
    folder.write(&small()).expect("written");
    assert!(
        PackedCache::open(&folder.0.path().join("none"), &KEY, &[])
            .expect("absent is no error")
            .is_none()
    );
    let link = folder.0.path().join("link");
    symlink(folder.cache(), &link).expect("a link");
    for path in [link.as_path(), folder.0.path(), Path::new("/dev/null")] {
        let error = PackedCache::open(path, &KEY, &parts(&small())).expect_err("not a file");
        assert!(matches!(error, CacheError::NotRegular), "{error}");
    }
}

#[test]
fn a_link_in_the_way_is_replaced_and_its_target_kept() {
    let folder = Folder::new();
    let target = folder.0.path().join("target");
    fs::write(&target, b"precious").expect("written");
    symlink(&target, folder.cache()).expect("a link");
    folder.write(&small()).expect("written");
    assert_eq!(fs::read(&target).expect("the target"), b"precious");
    assert!(read_all(&folder.cache(), &KEY, &parts(&small())).is_ok());
}

#[test]
fn a_failed_write_leaves_nothing() {
    let folder = Folder::new();
    // A folder cannot be replaced by a file; so the last step fails.
    fs::create_dir(folder.cache()).expect("a folder");
    let error = folder.write(&small()).expect_err("in the way");
    assert!(matches!(error, CacheError::Io(_)), "{error}");
    assert_eq!(folder.names(), ["m.gguf", "m.gguf.assay-packed"]);
    let elsewhere = folder.0.path().join("none").join("x");
    let data = small();
    let slices: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let error = write(&elsewhere, &folder.model(), &KEY, &parts(&data), &slices);
    assert!(matches!(error, Err(CacheError::Io(_))));
}

#[test]
fn what_a_killed_writer_left_is_removed() {
    let folder = Folder::new();
    let left = folder.0.path().join("m.gguf.assay-packed.partial-xyz");
    fs::write(&left, b"half").expect("written");
    folder.write(&small()).expect("written");
    assert_eq!(folder.names(), ["m.gguf", "m.gguf.assay-packed"]);
}

#[test]
fn writers_exclude_each_other() {
    let folder = Folder::new();
    let lock = fs::File::open(folder.model()).expect("the model");
    lock.lock().expect("locked");
    let error = folder.write(&small()).expect_err("locked");
    assert!(matches!(error, CacheError::Busy), "{error}");
    assert_eq!(folder.names(), ["m.gguf"]);
    drop(lock);
    // Many at once: at least one writes, the others are told so, and the file is whole.
    let results = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| folder.write(&small())))
            .collect();
        let join = |writer: std::thread::ScopedJoinHandle<'_, _>| writer.join().expect("no panic");
        writers.into_iter().map(join).collect::<Vec<_>>()
    });
    assert!(results.iter().any(Result::is_ok));
    for error in results.into_iter().filter_map(Result::err) {
        assert!(matches!(error, CacheError::Busy), "{error}");
    }
    assert_eq!(folder.names(), ["m.gguf", "m.gguf.assay-packed"]);
    let read = read_all(&folder.cache(), &KEY, &parts(&small())).expect("whole");
    assert_eq!(read, small());
}
