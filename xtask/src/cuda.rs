//! `cargo xtask cuda`: compiles every device kernel into `kernels.fatbin`, which is committed, and writes down the hashes
//! of what it was made from. Needs Python 3 with pip and a C++ compiler; the CUDA compiler comes as wheels.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::run::{command, root, run, succeeds};

/// The compiler's wheels; 13.0 is what drivers from 580 on can load.
const WHEELS: [&str; 5] = [
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-cuda-crt==13.0.*",
    "nvidia-nvvm==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "nvidia-cuda-cccl==13.0.*",
];

/// Where a product and a sum must not become one operation, nor a subnormal zero. Never `-use_fast_math`.
const FLAGS: [&str; 7] = [
    "-std=c++17",
    "-O3",
    "-fmad=false",
    "-ftz=false",
    "-prec-div=true",
    "-prec-sqrt=true",
    "--compress-mode=size",
];

/// Machine code for these, and PTX of the first for cards that are none of them. `90a` has the four-warp products.
const ARCHITECTURES: [&str; 4] = ["80", "89", "90a", "120"];

/// Compiles the kernels.
///
/// # Errors
/// If the compiler is not to be had or refuses the sources.
pub(crate) fn build() -> Result<()> {
    let nvcc = nvcc().context("the CUDA compiler needs Python 3 with pip")?;
    let src = root().join("crates/assay-kernels/src");
    let fatbin = src.join("cuda/kernels.fatbin");
    let mut compile = command(&nvcc);
    compile
        .args(FLAGS)
        .args(["--threads", "0", "--split-compile", "0", "-fatbin"]);
    for architecture in ARCHITECTURES {
        compile.arg(format!(
            "-gencode=arch=compute_{architecture},code=sm_{architecture}"
        ));
    }
    let oldest = ARCHITECTURES[0];
    compile.arg(format!(
        "-gencode=arch=compute_{oldest},code=compute_{oldest}"
    ));
    compile
        .arg("-o")
        .arg(&fatbin)
        .arg(src.join("cuda/kernels.cu"));
    run(compile)?;
    write_lock(&src, &nvcc)
}

/// Hashes of the sources and of the machine code, which a test compares.
fn write_lock(src: &Path, nvcc: &Path) -> Result<()> {
    let version = Command::new(nvcc).arg("--version").output()?;
    let version = String::from_utf8_lossy(&version.stdout);
    let version = version.lines().find(|line| line.contains("release"));
    let mut files = Vec::new();
    for folder in fs::read_dir(src)? {
        let folder = folder?.path();
        if folder.is_dir() {
            for file in fs::read_dir(&folder)? {
                let file = file?.path();
                if file
                    .extension()
                    .is_some_and(|ext| ext == "cu" || ext == "cuh")
                {
                    files.push(file.strip_prefix(src)?.display().to_string());
                }
            }
        }
    }
    files.sort();
    files.push("cuda/kernels.fatbin".into());
    let mut lock = format!(
        "# {}, {}, sm_{}\n",
        version.unwrap_or("nvcc"),
        FLAGS.join(" "),
        ARCHITECTURES.join(" sm_")
    );
    for file in files {
        let hash = blake3::hash(&fs::read(src.join(&file))?);
        lock.push_str(&format!("{} {file}\n", hash.to_hex()));
    }
    fs::write(src.join("cuda/kernels.lock"), lock)?;
    Ok(())
}

/// The compiler, in a virtual environment under `target/`.
fn nvcc() -> Result<PathBuf> {
    let venv = root().join("target/cuda-venv");
    if !succeeds({
        let mut probe = Command::new(venv.join("bin/python"));
        probe.args(["-m", "pip", "--version"]);
        probe
    }) {
        let mut create = command("python3");
        create.args(["-m", "venv"]).arg(&venv);
        run(create)?;
    }
    let mut install = command(venv.join("bin/python"));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    install.args(WHEELS);
    run(install)?;
    let lib = venv.join("lib");
    let python = fs::read_dir(&lib)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.join("site-packages/nvidia/cu13/bin/nvcc").exists())
        .with_context(|| format!("no nvcc under {}", lib.display()))?;
    Ok(python.join("site-packages/nvidia/cu13/bin/nvcc"))
}
