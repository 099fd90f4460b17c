//! AVX-512: sixteen elements at a time; the maximum, the rounding and the integer sums are exact in
//! any order.

use super::block_scales;
use super::tile::{BYTE_ROW_WORDS, BYTE_TILE_TOKENS, Place, TILE_ROW_WORDS, TILE_ROWS, WordLayout};
use std::arch::x86_64::*;

/// As [`reference::quantize_block`](super::reference::quantize_block); words are bytes or rows of
/// tiles, split or not.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")]
pub(super) fn quantize_block(x: &[f32], limit: f32, place: Place<'_>) -> f32 {
    let (x, _) = x.as_chunks::<16>();
    let mut integers = [_mm256_setzero_si256(); 16];
    let integers = &mut integers[..x.len()];
    let magnitude = _mm512_set1_epi32(0x7FFF_FFFF);
    let mut amax = _mm512_setzero_si512();
    for v in x {
        // SAFETY: `v` is 16 f32 = 64 bytes.
        let bits = unsafe { _mm512_loadu_si512(v.as_ptr().cast()) };
        amax = _mm512_max_epu32(amax, _mm512_and_si512(bits, magnitude));
    }
    let amax = f32::from_bits(_mm512_reduce_max_epu32(amax));

    let scale = match block_scales(amax, limit) {
        Ok((scale, inverse)) => {
            let inverse = _mm512_set1_ps(inverse);
            let (high, low) = (_mm512_set1_ps(limit), _mm512_set1_ps(-limit));
            for (v, a) in x.iter().zip(&mut *integers) {
                // SAFETY: `v` is 16 f32 = 64 bytes.
                let v = unsafe { _mm512_loadu_ps(v.as_ptr()) };
                let rounded = _mm512_roundscale_ps::<NEAREST>(_mm512_mul_ps(v, inverse));
                let clamped = _mm512_max_ps(_mm512_min_ps(rounded, high), low);
                *a = _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(clamped));
            }
            scale
        }
        Err(scale) => scale,
    };
    super::avx2::put_sums(integers, place.width, place.sums);
    match place.layout {
        WordLayout::SplitBytes => put_split(integers, place.width, place.words),
        WordLayout::Bytes => put_bytes(integers, place.width, place.words),
        WordLayout::SplitTileRows => put_tile_rows::<true>(integers, place.words),
        WordLayout::TileRows => put_tile_rows::<false>(integers, place.words),
        WordLayout::SplitByteRows => put_byte_rows::<true>(integers, place.words),
        WordLayout::ByteRows => put_byte_rows::<false>(integers, place.words),
        WordLayout::EvenOddPairs => unreachable!("no kernel above AVX2 multiplies pairs"),
    }
    scale
}

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// Quads as their four `hi` and four `lo` bytes, every `width`-th pair of words.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn put_split(integers: &[__m256i], width: usize, words: &mut [u32]) {
    let half = _mm256_set1_epi16(128);
    let mut quads = words.chunks_mut(2 * width);
    for &a in integers {
        // a + 128 cannot overflow: |a| ≤ 32,512.
        let hi = _mm256_cvtepi16_epi8(_mm256_srai_epi16::<8>(_mm256_add_epi16(a, half)));
        let lo = _mm256_cvtepi16_epi8(a);
        let mut pairs = [0_u32; 8];
        // SAFETY: `pairs` is 32 bytes.
        unsafe {
            let out = pairs.as_mut_ptr().cast::<__m128i>();
            _mm_storeu_si128(out, _mm_unpacklo_epi32(hi, lo));
            _mm_storeu_si128(out.add(1), _mm_unpackhi_epi32(hi, lo));
        }
        for (pair, quad) in pairs.as_chunks::<2>().0.iter().zip(&mut quads) {
            quad[..2].copy_from_slice(pair);
        }
    }
}

/// Quads as four bytes, every `width`-th word.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn put_bytes(integers: &[__m256i], width: usize, words: &mut [u32]) {
    let mut words = words.iter_mut().step_by(width);
    for &a in integers {
        let mut quads = [0_u32; 4];
        // SAFETY: `quads` is 16 bytes.
        unsafe { _mm_storeu_si128(quads.as_mut_ptr().cast(), _mm256_cvtepi16_epi8(a)) };
        for (quad, word) in quads.into_iter().zip(&mut words) {
            *word = quad;
        }
    }
}

/// A row of each 32-block's tile of bytes; split, a row of `hi`, then one of `lo`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn put_byte_rows<const SPLIT: bool>(integers: &[__m256i], words: &mut [u32]) {
    const PART_WORDS: usize = BYTE_TILE_TOKENS * BYTE_ROW_WORDS;
    let half = _mm256_set1_epi16(128);
    let parts = if SPLIT { 2 } else { 1 };
    let (blocks, _) = integers.as_chunks::<2>();
    for (&block, tile) in blocks.iter().zip(words.chunks_mut(parts * PART_WORDS)) {
        if SPLIT {
            // a + 128 cannot overflow: |a| ≤ 32,512.
            let hi = block.map(|a| _mm256_srai_epi16::<8>(_mm256_add_epi16(a, half)));
            put_byte_row(hi, tile);
            put_byte_row(block, &mut tile[PART_WORDS..]);
        } else {
            put_byte_row(block, tile);
        }
    }
}

/// The lower byte of each integer, as a row.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn put_byte_row(integers: [__m256i; 2], row: &mut [u32]) {
    let row = &mut row[..BYTE_ROW_WORDS];
    let [first, second] = integers.map(|a| _mm256_cvtepi16_epi8(a));
    // SAFETY: the row is 32 bytes.
    unsafe {
        let out = row.as_mut_ptr().cast::<__m128i>();
        _mm_storeu_si128(out, first);
        _mm_storeu_si128(out.add(1), second);
    }
}

/// A row of each 32-block's tile of BF16 integers; split, a row of `256·hi`, then one of `lo`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn put_tile_rows<const SPLIT: bool>(integers: &[__m256i], words: &mut [u32]) {
    let half = _mm256_set1_epi16(128);
    let upper = _mm256_set1_epi16(-256);
    let parts = if SPLIT { 2 } else { 1 };
    let (blocks, _) = integers.as_chunks::<2>();
    for (&block, tiles) in blocks
        .iter()
        .zip(words.chunks_mut(parts * TILE_ROWS * TILE_ROW_WORDS))
    {
        if SPLIT {
            // a + 128 cannot overflow: |a| ≤ 32,512.
            let hi = block.map(|a| _mm256_and_si256(_mm256_add_epi16(a, half), upper));
            let lo = [
                _mm256_sub_epi16(block[0], hi[0]),
                _mm256_sub_epi16(block[1], hi[1]),
            ];
            put_tile_row(hi, tiles);
            put_tile_row(lo, &mut tiles[TILE_ROWS * TILE_ROW_WORDS..]);
        } else {
            put_tile_row(block, tiles);
        }
    }
}

/// Integers that BF16 holds exactly, as a tile row.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn put_tile_row(integers: [__m256i; 2], row: &mut [u32]) {
    let [a, b] =
        integers.map(|a| _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(a))));
    let row = &mut row[..TILE_ROW_WORDS];
    // SAFETY: the order is 32 indices = 64 bytes, and so is the row.
    unsafe {
        let order = _mm512_loadu_si512(UPPER_HALVES.as_ptr().cast());
        let halves = _mm512_permutex2var_epi16(a, order, b);
        _mm512_storeu_si512(row.as_mut_ptr().cast(), halves);
    }
}

/// The upper halves of 32 f32 in two registers, the elements of a quad in the order 0, 2, 1, 3.
const UPPER_HALVES: [u16; 32] = {
    let mut order = [0; 32];
    let mut i = 0;
    while i < 32 {
        let in_quad = [0, 2, 1, 3][i % 4];
        order[i] = (2 * (i / 4 * 4 + in_quad) + 1) as u16;
        i += 1;
    }
    order
};
