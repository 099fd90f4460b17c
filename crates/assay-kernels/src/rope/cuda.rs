//! The rotation on a device.

use cudarc::driver::DeviceRepr;

use crate::cuda::{Cuda, CudaError, DeviceBuffer, Grid, launch};

use super::{RopeStyle, RopeTable};

/// A [`RopeTable`] on a device.
#[derive(Debug)]
pub struct DeviceRopeTable {
    num_pairs: usize,
    num_positions: usize,
    cos: DeviceBuffer<f32>,
    sin: DeviceBuffer<f32>,
}

impl DeviceRopeTable {
    /// Copies `table`.
    ///
    /// # Errors
    /// [`CudaError`] when the device has no memory.
    pub fn upload(cuda: &Cuda, table: &RopeTable) -> Result<Self, CudaError> {
        let (cos, sin) = table.values();
        Ok(Self {
            num_pairs: table.rotary_dims() / 2,
            num_positions: table.num_positions(),
            cos: DeviceBuffer::upload(cuda, cos)?,
            sin: DeviceBuffer::upload(cuda, sin)?,
        })
    }

    /// Positions in the table.
    pub fn num_positions(&self) -> usize {
        self.num_positions
    }

    /// Elements of each head that turn.
    pub(crate) fn rotary_dims(&self) -> usize {
        2 * self.num_pairs
    }

    pub(crate) fn rotation(&self, cuda: &Cuda, style: RopeStyle) -> Rotation {
        Rotation {
            cos: self.cos.ptr(cuda),
            sin: self.sin.ptr(cuda),
            num_pairs: self.num_pairs as i32,
            is_interleaved: i32::from(style == RopeStyle::Interleaved),
        }
    }
}

/// `Rotation` of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation {
    cos: u64,
    sin: u64,
    num_pairs: i32,
    is_interleaved: i32,
}

// SAFETY: two addresses and two numbers in C order, as the kernels declare them.
unsafe impl DeviceRepr for Rotation {}

/// Turns every head of every token to its position, where it stands: `x` `[num_tokens, num_heads, head_dim]`. Every
/// position is below `end_position`.
///
/// # Panics
/// If the shapes do not fit, or `end_position` is past the table.
pub fn rope(
    cuda: &Cuda,
    table: &DeviceRopeTable,
    style: RopeStyle,
    positions: &DeviceBuffer<u32>,
    end_position: usize,
    x: &mut DeviceBuffer<f32>,
    [num_heads, head_dim]: [usize; 2],
) {
    let num_tokens = positions.len();
    assert_eq!(
        x.len(),
        num_tokens * num_heads * head_dim,
        "rope: {num_tokens} tokens of {num_heads} heads of {head_dim}"
    );
    assert!(
        2 * table.num_pairs <= head_dim && end_position <= table.num_positions,
        "rope: positions below {end_position} in a table of {}",
        table.num_positions
    );
    let (kernel, rotation) = (&cuda.kernels.rope, table.rotation(cuda, style));
    let grid = Grid {
        blocks: [num_heads, num_tokens, 1],
        ..Grid::new(0, 64)
    };
    // SAFETY: the table has every position, and `x` a row of heads for each token.
    unsafe {
        launch!(
            cuda, kernel, grid;
            rotation, positions.ptr(cuda), num_heads as i32, head_dim as i32, x.ptr(cuda),
        );
    }
}
