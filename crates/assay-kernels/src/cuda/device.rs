//! One device: its context, its stream, its kernels, and the first fault it had.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaStream, LaunchConfig};
use cudarc::nvrtc::Ptx;

use super::CudaError;
use super::kernels::Kernels;

/// Machine code and PTX of every kernel.
pub(super) const FATBIN: &[u8] = include_bytes!("kernels.fatbin");

/// A device that is ready to compute. Work is done in the order it is asked for; whoever reads a result waits.
///
/// A fault is sticky, as it is in CUDA itself: once a call has failed, later ones do nothing, and [`Cuda::check`] tells
/// the first fault. What is read back after a fault is worth nothing, so whoever reads asks afterwards.
#[derive(Debug)]
pub struct Cuda {
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) kernels: Kernels,
    module: Arc<CudaModule>,
    name: String,
    num_multiprocessors: usize,
    /// How often a buffer has grown, and so moved.
    num_growths: AtomicU64,
    fault: Mutex<Option<CudaError>>,
}

impl Cuda {
    /// Opens device `ordinal` and proves on golden vectors that it computes what the contract says.
    ///
    /// # Errors
    /// [`CudaError`]: there is no driver or no such device, it is too old, or an op's bits differ.
    pub fn open(ordinal: usize) -> Result<Arc<Self>, CudaError> {
        let cuda = Self::open_untested(ordinal, FATBIN)?;
        cuda.self_test()?;
        Ok(cuda)
    }

    /// [`Cuda::open`] with other kernels and without the self-test.
    pub(super) fn open_untested(ordinal: usize, fatbin: &[u8]) -> Result<Arc<Self>, CudaError> {
        // SAFETY: loading the driver's library runs its initialisers, which is what every user of CUDA does.
        if !unsafe { sys::is_culib_present() } {
            return Err(CudaError::NoDriver);
        }
        cudarc::driver::result::init().map_err(CudaError::driver("starting the driver"))?;
        let count = CudaContext::device_count().map_err(CudaError::driver("counting devices"))?;
        let count = usize::try_from(count).unwrap_or(0);
        if ordinal >= count {
            return Err(CudaError::NoDevice { ordinal, count });
        }
        let context = CudaContext::new(ordinal).map_err(CudaError::driver("opening the device"))?;
        let name = context
            .name()
            .map_err(CudaError::driver("asking its name"))?;
        let (major, minor) = context
            .compute_capability()
            .map_err(CudaError::driver("asking its capability"))?;
        if major < 8 {
            return Err(CudaError::TooOld {
                ordinal,
                name,
                major,
                minor,
            });
        }
        // SAFETY: everything here runs on one stream, so no event is needed to order two.
        unsafe { context.disable_event_tracking() };
        let stream = context
            .new_stream()
            .map_err(CudaError::driver("making a stream"))?;
        let module = context
            .load_module(Ptx::from_binary(fatbin.to_vec()))
            .map_err(CudaError::driver("loading the kernels"))?;
        let kernels = Kernels::load(&module)?;
        let num_multiprocessors = context
            .attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map_err(CudaError::driver("asking its size"))?;
        Ok(Arc::new(Self {
            stream,
            kernels,
            module,
            name,
            num_multiprocessors: usize::try_from(num_multiprocessors).unwrap_or(1),
            num_growths: AtomicU64::new(0),
            fault: Mutex::new(None),
        }))
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Memory of the device that nobody has taken, if the driver tells.
    pub fn free_memory_bytes(&self) -> Option<u64> {
        let (free, _) = self.stream.context().mem_get_info().ok()?;
        Some(free as u64)
    }

    /// Its multiprocessors.
    pub(crate) fn num_multiprocessors(&self) -> usize {
        self.num_multiprocessors
    }

    /// Kernel `name`.
    pub(crate) fn function(&self, name: &str) -> Result<CudaFunction, CudaError> {
        self.module
            .load_function(name)
            .map_err(CudaError::driver("finding a kernel"))
    }

    /// How often a buffer of this device has grown.
    pub(crate) fn num_growths(&self) -> u64 {
        self.num_growths.load(Ordering::Relaxed)
    }

    pub(super) fn count_growth(&self) {
        self.num_growths.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for all work and tells the first fault.
    ///
    /// # Errors
    /// [`CudaError`], and again at every later call.
    pub fn check(&self) -> Result<(), CudaError> {
        let waited = self.stream.synchronize();
        self.note(waited.map_err(CudaError::driver("waiting for the kernels")));
        match &*self.lock_fault() {
            None => Ok(()),
            Some(fault) => Err(fault.clone()),
        }
    }

    /// The first fault so far, without waiting.
    pub fn fault(&self) -> Option<CudaError> {
        self.lock_fault().clone()
    }

    /// Remembers a fault, if it is the first; the value otherwise.
    pub(crate) fn note<T>(&self, result: Result<T, CudaError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.lock_fault().get_or_insert(error);
                None
            }
        }
    }

    /// Whether a call has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock_fault().is_some()
    }

    fn lock_fault(&self) -> std::sync::MutexGuard<'_, Option<CudaError>> {
        self.fault
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// How many threads a kernel gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// Blocks along x, y and z.
    pub(crate) blocks: [usize; 3],
    /// Threads of a block.
    pub(crate) threads: usize,
    /// Shared memory of a block beyond what the kernel declares.
    pub(crate) shared_bytes: usize,
}

impl Grid {
    /// `blocks` blocks of `threads` threads.
    pub(crate) fn new(blocks: usize, threads: usize) -> Self {
        Self {
            blocks: [blocks, 1, 1],
            threads,
            shared_bytes: 0,
        }
    }

    /// Threads for `len` elements, each of which may take several.
    pub(crate) fn elements(len: usize) -> Self {
        Self::new(len.div_ceil(256).min(4096), 256)
    }

    /// What the driver takes; `None` when there is nothing to do.
    pub(crate) fn config(self) -> Option<LaunchConfig> {
        let [x, y, z] = self
            .blocks
            .map(|blocks| u32::try_from(blocks).expect("a grid's side fits 32 bits"));
        (x > 0 && y > 0 && z > 0).then_some(LaunchConfig {
            grid_dim: (x, y, z),
            block_dim: (self.threads as u32, 1, 1),
            shared_mem_bytes: self.shared_bytes as u32,
        })
    }
}

/// Asks `cuda` to run `function` on `grid` with the arguments given; an empty grid does nothing.
///
/// # Safety
/// As `LaunchArgs::launch`: the arguments are the kernel's, in number, order and type, and every pointer leads to as
/// much memory as the kernel touches.
macro_rules! launch {
    ($cuda:expr, $function:expr, $grid:expr; $($argument:expr),+ $(,)?) => {{
        let cuda: &$crate::cuda::Cuda = $cuda;
        if let (false, Some(config)) = (cuda.has_failed(), $grid.config()) {
            let mut builder = cuda.stream.launch_builder($function);
            $(
                let argument = $argument;
                cudarc::driver::PushKernelArg::arg(&mut builder, &argument);
            )+
            let launched = builder.launch(config);
            cuda.note(launched.map_err($crate::cuda::CudaError::driver("launching a kernel")));
        }
    }};
}
pub(crate) use launch;
