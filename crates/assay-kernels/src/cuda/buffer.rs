//! Memory of a device, by element type, which keeps its size until it must grow.

use cudarc::driver::sys::{CUdeviceptr, CUresult};
use cudarc::driver::{CudaSlice, DevicePtr, DeviceRepr};

use super::{Cuda, CudaError};

/// Reused buffers shorter than this get room to grow.
const ROOMY: usize = 1 << 20;
/// Room of the shortest.
const LEAST: usize = 1024;

/// Elements on a device; none at first.
#[derive(Debug)]
pub struct DeviceBuffer<T> {
    slice: Option<CudaSlice<T>>,
    len: usize,
}

impl<T> Default for DeviceBuffer<T> {
    fn default() -> Self {
        Self {
            slice: None,
            len: 0,
        }
    }
}

impl<T: DeviceRepr> DeviceBuffer<T> {
    /// A copy of `values`.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], or the driver's answer.
    pub fn upload(cuda: &Cuda, values: &[T]) -> Result<Self, CudaError> {
        let mut buffer = Self::default();
        buffer.grow(cuda, values.len())?;
        buffer.copy_from(cuda, values)?;
        Ok(buffer)
    }

    /// `len` elements of zero bits.
    ///
    /// # Errors
    /// As [`DeviceBuffer::upload`].
    pub fn zeroed(cuda: &Cuda, len: usize) -> Result<Self, CudaError>
    where
        T: cudarc::driver::ValidAsZeroBits,
    {
        let mut buffer = Self::default();
        buffer.grow(cuda, len)?;
        if let Some(slice) = &mut buffer.slice {
            cuda.stream
                .memset_zeros(slice)
                .map_err(CudaError::driver("clearing memory"))?;
        }
        Ok(buffer)
    }

    /// Makes it `len` elements of unspecified values, to be overwritten.
    pub fn sized(&mut self, cuda: &Cuda, len: usize) -> &mut Self {
        if !cuda.has_failed() && len > self.capacity() {
            // Room to grow, so that a table that becomes longer by and by does not move each time.
            let roomy = if len < ROOMY {
                len.next_power_of_two().max(LEAST)
            } else {
                len
            };
            let grown = self.grow(cuda, roomy);
            cuda.note(grown);
        }
        self.len = len;
        self
    }

    /// Makes it `values`.
    pub fn fill(&mut self, cuda: &Cuda, values: &[T]) -> &mut Self {
        self.sized(cuda, values.len());
        if !cuda.has_failed() {
            let copied = self.copy_from(cuda, values);
            cuda.note(copied);
        }
        self
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads elements `start..start + len` back, once all work before is done.
    ///
    /// # Errors
    /// The device's first fault.
    ///
    /// # Panics
    /// If there are fewer elements.
    pub fn read(&self, cuda: &Cuda, start: usize, len: usize) -> Result<Vec<T>, CudaError>
    where
        T: Clone + Default,
    {
        assert!(start + len <= self.len, "{start} + {len} of {}", self.len);
        let mut values = vec![T::default(); len];
        if let (false, Some(slice)) = (cuda.has_failed() || len == 0, &self.slice) {
            let copied = cuda
                .stream
                .memcpy_dtoh(&slice.slice(start..start + len), &mut values);
            cuda.note(copied.map_err(CudaError::driver("reading memory")));
        }
        cuda.check()?;
        Ok(values)
    }

    /// Overwrites all of it with elements `start..start + len` of `from`.
    ///
    /// # Panics
    /// If it has another length, or `from` fewer elements.
    pub fn copy_part(&mut self, cuda: &Cuda, from: &Self, start: usize, len: usize) {
        assert_eq!(self.len, len, "length of the part");
        assert!(start + len <= from.len, "{start} + {len} of {}", from.len);
        if let (false, Some(from), Some(to)) =
            (cuda.has_failed() || len == 0, &from.slice, &mut self.slice)
        {
            let (from, mut to) = (from.slice(start..start + len), to.slice_mut(..len));
            let copied = cuda.stream.memcpy_dtod(&from, &mut to);
            cuda.note(copied.map_err(CudaError::driver("copying memory")));
        }
    }

    /// Copies `len` elements from `from` to `to` inside the buffer; the two parts do not overlap.
    ///
    /// # Panics
    /// If a part lies outside, or they overlap.
    pub fn copy_within(&mut self, cuda: &Cuda, from: usize, to: usize, len: usize) {
        assert!(from.max(to) + len <= self.len, "parts lie in the buffer");
        assert!(from.abs_diff(to) >= len, "parts are apart");
        if let (false, Some(slice)) = (cuda.has_failed(), &mut self.slice) {
            let (low, high) = slice.split_at_mut(from.max(to));
            let (mut low, mut high) = (low, high);
            let mut near = low.slice_mut(from.min(to)..from.min(to) + len);
            let mut far = high.slice_mut(..len);
            let copied = match from < to {
                true => cuda.stream.memcpy_dtod(&near, &mut far),
                false => cuda.stream.memcpy_dtod(&far, &mut near),
            };
            cuda.note(copied.map_err(CudaError::driver("copying memory")));
        }
    }

    /// Where it lies: an argument of kernels. 0 while it has no memory, which only a failed device sees.
    pub(crate) fn ptr(&self, cuda: &Cuda) -> CUdeviceptr {
        self.slice
            .as_ref()
            .map_or(0, |slice| slice.device_ptr(&cuda.stream).0)
    }

    fn capacity(&self) -> usize {
        self.slice.as_ref().map_or(0, CudaSlice::len)
    }

    fn grow(&mut self, cuda: &Cuda, len: usize) -> Result<(), CudaError> {
        if len > self.capacity() {
            self.slice = None;
            cuda.count_growth();
            // SAFETY: whoever sizes a buffer writes an element before reading it; `T` is plain data.
            let slice = unsafe { cuda.stream.alloc(len) };
            self.slice = Some(slice.map_err(|source| match source.0 {
                CUresult::CUDA_ERROR_OUT_OF_MEMORY => CudaError::OutOfMemory {
                    bytes: len.saturating_mul(size_of::<T>()),
                },
                _ => CudaError::driver("taking memory")(source),
            })?);
        }
        self.len = len;
        Ok(())
    }

    fn copy_from(&mut self, cuda: &Cuda, values: &[T]) -> Result<(), CudaError> {
        match &mut self.slice {
            Some(slice) if !values.is_empty() => cuda
                .stream
                .memcpy_htod(values, slice)
                .map_err(CudaError::driver("writing memory")),
            _ => Ok(()),
        }
    }
}
