//! One device: its context, its stream, its kernels, and the first fault it had.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use std::ffi::c_void;

use cudarc::driver::sys::{
    self, CUdevice_attribute_enum as Attribute, CUfunction_attribute_enum as FunctionAttribute,
    CUlaunchAttribute, CUlaunchAttributeID_enum as LaunchAttribute, CUlaunchAttributeValue,
    CUlaunchConfig,
};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaStream, DeviceRepr};
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
    /// Major and minor compute capability.
    capability: (i32, i32),
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
        let is_hopper = (major, minor) == (9, 0);
        let kernels = Kernels::load(&module, is_hopper)?;
        let num_multiprocessors = context
            .attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map_err(CudaError::driver("asking its size"))?;
        Ok(Arc::new(Self {
            stream,
            kernels,
            module,
            name,
            num_multiprocessors: usize::try_from(num_multiprocessors).unwrap_or(1),
            capability: (major, minor),
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

    /// Whether the kernels of `*/hopper.cu` run here.
    pub(crate) fn is_hopper(&self) -> bool {
        self.capability == (9, 0)
    }

    /// Kernel `name`.
    pub(crate) fn function(&self, name: &str) -> Result<CudaFunction, CudaError> {
        self.module
            .load_function(name)
            .map_err(CudaError::driver("finding a kernel"))
    }

    /// Kernel `name`, with all the shared memory that a block of threads can have.
    pub(crate) fn roomy_function(&self, name: &str) -> Result<CudaFunction, CudaError> {
        let function = self.function(name)?;
        roomy(&function, ROOMY_SHARED_BYTES)?;
        Ok(function)
    }

    /// Asks for `function` on `config` with `arguments`. From compute capability 9.0 on the kernel is brought up while the
    /// one before it runs; every kernel waits for that one first (`begin()` in `hopper.cuh`).
    ///
    /// # Safety
    /// `arguments` lead to the kernel's, in number, order and type, and every pointer among them to as much memory as the
    /// kernel touches.
    pub(crate) unsafe fn launch(
        &self,
        function: &CudaFunction,
        mut config: CUlaunchConfig,
        arguments: &mut [*mut c_void],
    ) {
        let bound = self.stream.context().bind_to_thread();
        let mut attribute = CUlaunchAttribute {
            id: LaunchAttribute::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: CUlaunchAttributeValue {
                programmaticStreamSerializationAllowed: 1,
            },
        };
        config.hStream = self.stream.cu_stream();
        config.attrs = &raw mut attribute;
        config.numAttrs = u32::from(self.capability.0 >= 9);
        let (function, arguments) = (function.cu_function(), arguments.as_mut_ptr());
        // SAFETY: the caller vouches for the arguments; configuration and attribute outlive the call.
        let launched = bound.and_then(|()| unsafe {
            sys::cuLaunchKernelEx(&raw const config, function, arguments, std::ptr::null_mut())
                .result()
        });
        self.note(launched.map_err(CudaError::driver("launching a kernel")));
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
    pub(crate) fn config(self) -> Option<CUlaunchConfig> {
        let [x, y, z] = self
            .blocks
            .map(|blocks| u32::try_from(blocks).expect("a grid's side fits 32 bits"));
        (x > 0 && y > 0 && z > 0).then_some(CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: self.threads as u32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: self.shared_bytes as u32,
            hStream: std::ptr::null_mut(),
            attrs: std::ptr::null_mut(),
            numAttrs: 0,
        })
    }
}

/// Shared memory that a block of threads can have on compute capability 9.0.
pub(crate) const ROOMY_SHARED_BYTES: usize = 227 << 10;

/// `function`, allowed `bytes` of shared memory beside what it declares.
pub(super) fn roomy(function: &CudaFunction, bytes: usize) -> Result<(), CudaError> {
    let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    function
        .set_attribute(attribute, bytes as i32)
        .map_err(CudaError::driver("asking for shared memory"))
}

/// Where the driver finds an argument of a kernel.
pub(crate) fn argument<T: DeviceRepr>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

/// Asks `cuda` to run `function` on `grid` with the arguments given; an empty grid does nothing.
///
/// # Safety
/// As [`Cuda::launch`].
macro_rules! launch {
    ($cuda:expr, $function:expr, $grid:expr; $($argument:expr),+ $(,)?) => {{
        let cuda: &$crate::cuda::Cuda = $cuda;
        if let (false, Some(config)) = (cuda.has_failed(), $grid.config()) {
            let mut arguments = Vec::new();
            $(
                let argument = $argument;
                arguments.push($crate::cuda::argument(&argument));
            )+
            cuda.launch($function, config, &mut arguments);
        }
    }};
}
pub(crate) use launch;
