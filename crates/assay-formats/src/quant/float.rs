//! Plain floating-point tensors. Widening to f32 is exact for both 16-bit formats.

use half::f16;

pub(super) fn f32_values(bytes: &[u8], out: &mut [f32]) {
    for (value, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *value = f32::from_le_bytes(*bytes);
    }
}

pub(super) fn f16_values(bytes: &[u8], out: &mut [f32]) {
    for (value, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *value = f16::from_le_bytes(*bytes).to_f32();
    }
}

pub(super) fn bf16_values(bytes: &[u8], out: &mut [f32]) {
    for (value, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *value = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
    }
}
