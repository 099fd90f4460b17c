// How a packed panel lies: the device's view of `quants/` and `scales/`, layout version 1. A panel is 16 rows; along K
// it is steps of 256 elements, each a section of scales and then sub-blocks of 32 elements.
#pragma once

#include "../cuda/hopper.cuh"
#include "../cuda/numerics.cuh"

namespace assay {

constexpr int PANEL_ROWS = 16;
constexpr int BLOCK = 32;
constexpr int BLOCKS_PER_STEP = 8;

/// A quad (four consecutive elements of a row, a byte each) and the next.
struct Pair {
    uint32_t even, odd;
};

/// Where a panel lies: an address in global memory is a pointer, one in shared memory this.
struct Shared {
    uint32_t address;
    __device__ __forceinline__ Shared operator+(int bytes) const { return {address + (uint32_t)bytes}; }
};

/// A word of a panel. Volatile, so that loads written early are issued early: the panel streams from memory.
__device__ __forceinline__ uint32_t word_at(const uint8_t* at) {
    uint32_t word;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(word) : "l"(at));
    return word;
}
/// A byte of a panel's scales.
__device__ __forceinline__ uint32_t byte_at(const uint8_t* at) {
    uint32_t byte;
    asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(byte) : "l"(at));
    return byte;
}
/// The f16 of a row in a panel's vector of sixteen, as its exact value.
__device__ __forceinline__ float half_of(const uint8_t* vector, int row) {
    uint16_t bits;
    asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(bits) : "l"(vector + 2 * row));
    return __half2float(__ushort_as_half(bits));
}
__device__ __forceinline__ uint32_t word_at(Shared at) {
    uint32_t word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(at.address));
    return word;
}
__device__ __forceinline__ uint32_t byte_at(Shared at) {
    uint32_t byte;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(byte) : "r"(at.address));
    return byte;
}
__device__ __forceinline__ float half_of(Shared vector, int row) {
    uint16_t bits;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits) : "r"(vector.address + 2 * row));
    return __half2float(__ushort_as_half(bits));
}
__device__ __forceinline__ uint32_t byte_of(uint32_t word, int byte) { return word >> (8 * byte) & 0xFF; }

// ---- Quants: `pair(sub_block, row, i)` gives quads 2i and 2i+1 of a row, unsigned, i in 0..4. ----

template <int ZERO>
struct U8 {
    static constexpr int SUB_BLOCK_BYTES = 512, ZERO_POINT = ZERO;
    template <typename At>
    static __device__ __forceinline__ Pair pair(At s, int row, int i) {
        return {word_at(s + 128 * i + 4 * row), word_at(s + 128 * i + 64 + 4 * row)};
    }
};

template <int ZERO>
struct U4 {
    static constexpr int SUB_BLOCK_BYTES = 256, ZERO_POINT = ZERO;
    template <typename At>
    static __device__ __forceinline__ Pair pair(At s, int row, int i) {
        const uint32_t nibbles = word_at(s + 64 * i + 4 * row);
        return {nibbles & 0x0F0F0F0Fu, nibbles >> 4 & 0x0F0F0F0Fu};
    }
};

template <int ZERO>
struct U5 {
    static constexpr int SUB_BLOCK_BYTES = 320, ZERO_POINT = ZERO;
    template <typename At>
    static __device__ __forceinline__ Pair pair(At s, int row, int i) {
        const Pair low = U4<0>::pair(s, row, i);
        // Bits 2i and 2i+1 of each byte are the fifth bits.
        const uint32_t plane = word_at(s + 256 + 4 * row) >> (2 * i);
        return {low.even | (plane & 0x01010101u) << 4, low.odd | (plane >> 1 & 0x01010101u) << 4};
    }
};

template <int ZERO>
struct U6 {
    static constexpr int SUB_BLOCK_BYTES = 384, ZERO_POINT = ZERO;
    template <typename At>
    static __device__ __forceinline__ Pair pair(At s, int row, int i) {
        const Pair low = U4<0>::pair(s, row, i);
        const uint32_t plane = word_at(s + 256 + 64 * (i / 2) + 4 * row) >> (4 * (i % 2));
        return {low.even | (plane & 0x03030303u) << 4, low.odd | (plane >> 2 & 0x03030303u) << 4};
    }
};

template <int ZERO>
struct U2 {
    static constexpr int SUB_BLOCK_BYTES = 128, ZERO_POINT = ZERO;
    template <typename At>
    static __device__ __forceinline__ Pair pair(At s, int row, int i) {
        const uint32_t bits = word_at(s + 64 * (i / 2) + 4 * row) >> (4 * (i % 2));
        return {bits & 0x03030303u, bits >> 2 & 0x03030303u};
    }
};

template <int ZERO>
struct U3 {
    static constexpr int SUB_BLOCK_BYTES = 192, ZERO_POINT = ZERO;
    template <typename At>
    static __device__ __forceinline__ Pair pair(At s, int row, int i) {
        const Pair low = U2<0>::pair(s, row, i);
        const uint32_t plane = word_at(s + 128 + 4 * row) >> (2 * i);
        return {low.even | (plane & 0x01010101u) << 2, low.odd | (plane >> 1 & 0x01010101u) << 2};
    }
};

// ---- Tables: an index of at most four bits to an unsigned quant, 16 bytes as four words. ----

/// Bytes of four indices, each below 16, through a table.
template <uint32_t A, uint32_t B, uint32_t C, uint32_t D>
__device__ __forceinline__ uint32_t look_up(uint32_t indices) {
    // A byte-permute reads a selector of three bits a nibble from two words; the fourth bit picks the pair of words.
    const uint32_t gathered = (indices | indices >> 4) & 0x00FF00FFu;
    const uint32_t selector = (gathered | gathered >> 8) & 0xFFFFu;
    const uint32_t low = __byte_perm(A, B, selector & 0x7777u);
    const uint32_t high = __byte_perm(C, D, selector & 0x7777u);
    const uint32_t is_high = (indices >> 3 & 0x01010101u) * 0xFFu;
    return (low & ~is_high) | (high & is_high);
}

template <typename Indices, int ZERO, uint32_t A, uint32_t B, uint32_t C, uint32_t D>
struct LookUp {
    static constexpr int SUB_BLOCK_BYTES = Indices::SUB_BLOCK_BYTES, ZERO_POINT = ZERO;
    template <typename At>
    static __device__ __forceinline__ Pair pair(At s, int row, int i) {
        const Pair indices = Indices::pair(s, row, i);
        return {look_up<A, B, C, D>(indices.even), look_up<A, B, C, D>(indices.odd)};
    }
};

constexpr uint32_t bytes(int zero, int a, int b, int c, int d) {
    return (uint32_t)((a + zero) & 255) | (uint32_t)((b + zero) & 255) << 8 | (uint32_t)((c + zero) & 255) << 16 |
           (uint32_t)((d + zero) & 255) << 24;
}

using Iq4 = LookUp<U4<0>, 127, bytes(127, -127, -104, -83, -65), bytes(127, -49, -35, -22, -10),
                   bytes(127, 1, 13, 25, 38), bytes(127, 53, 69, 89, 113)>;
using Mxfp4 = LookUp<U4<0>, 12, bytes(12, 0, 1, 2, 3), bytes(12, 4, 6, 8, 12), bytes(12, 0, -1, -2, -3),
                     bytes(12, -4, -6, -8, -12)>;
using Iq3Xxs = LookUp<U4<0>, 62, bytes(62, -62, -52, -44, -36), bytes(62, -28, -20, -12, -4), bytes(62, 4, 12, 20, 28),
                      bytes(62, 36, 44, 52, 62)>;
using Iq3S = LookUp<U4<0>, 15, bytes(15, -15, -13, -11, -9), bytes(15, -7, -5, -3, -1), bytes(15, 1, 3, 5, 7),
                    bytes(15, 9, 11, 13, 15)>;
using Iq2 = LookUp<U3<0>, 43, bytes(43, -43, -25, -8, 8), bytes(43, 25, 43, 0, 0), 0, 0>;
using Iq1 = LookUp<U3<0>, 9, bytes(9, -9, -7, -1, 1), bytes(9, 7, 9, 0, 0), 0, 0>;

/// Quant k of a row, k in 0..32.
template <typename Q>
__device__ __forceinline__ uint32_t quant(const uint8_t* sub_block, int row, int k) {
    const Pair pair = Q::pair(sub_block, row, k / 8);
    return byte_of(k % 8 < 4 ? pair.even : pair.odd, k % 4);
}

// ---- Scales: `weight(section, j, row, row_of(section, row))` and `offset`, j counted within one 256-block. ----

struct HalfScale {
    static constexpr int SUB_BLOCK = 32;
    static constexpr bool HAS_OFFSET = false;
    static __host__ __device__ constexpr int section_bytes(int num_blocks) { return (32 * num_blocks + 63) / 64 * 64; }
    struct Row {};
    template <typename At>
    static __device__ __forceinline__ Row row_of(At, int) { return {}; }
    template <typename At>
    static __device__ __forceinline__ float weight(At s, int j, int row, Row) { return half_of(s + 32 * j, row); }
    template <typename At>
    static __device__ __forceinline__ float offset(At, int, int, Row) { return 0.0f; }
};

struct HalfScaleOffset {
    static constexpr int SUB_BLOCK = 32;
    static constexpr bool HAS_OFFSET = true;
    static __host__ __device__ constexpr int section_bytes(int num_blocks) { return 64 * num_blocks; }
    struct Row {};
    template <typename At>
    static __device__ __forceinline__ Row row_of(At, int) { return {}; }
    template <typename At>
    static __device__ __forceinline__ float weight(At s, int j, int row, Row) { return half_of(s + 64 * j, row); }
    template <typename At>
    static __device__ __forceinline__ float offset(At s, int j, int row, Row) { return half_of(s + 64 * j + 32, row); }
};

template <int SUB>
struct SuperScaleOffset {
    static constexpr int SUB_BLOCK = SUB;
    static constexpr bool HAS_OFFSET = true;
    static constexpr int MINIMA = 64 + 256 / SUB * PANEL_ROWS;
    static __host__ __device__ constexpr int section_bytes(int) { return MINIMA + 256 / SUB * PANEL_ROWS; }
    struct Row {
        float d, negative_dmin;
    };
    template <typename At>
    static __device__ __forceinline__ Row row_of(At s, int row) { return {half_of(s, row), -half_of(s + 32, row)}; }
    template <typename At>
    static __device__ __forceinline__ float weight(At s, int j, int row, Row of) {
        return mul(of.d, (float)byte_at(s + (64 + PANEL_ROWS * j + row)));
    }
    template <typename At>
    static __device__ __forceinline__ float offset(At s, int j, int row, Row of) {
        return mul(of.negative_dmin, (float)byte_at(s + (MINIMA + PANEL_ROWS * j + row)));
    }
};

template <int SUB, int DIVISOR>
struct SuperScaleSigned {
    static constexpr int SUB_BLOCK = SUB;
    static constexpr bool HAS_OFFSET = false;
    static __host__ __device__ constexpr int section_bytes(int) { return 64 + 256 / SUB * PANEL_ROWS; }
    struct Row {
        float d;
    };
    template <typename At>
    static __device__ __forceinline__ Row row_of(At s, int row) { return {mul(half_of(s, row), 1.0f / DIVISOR)}; }
    template <typename At>
    static __device__ __forceinline__ float weight(At s, int j, int row, Row of) {
        return mul(of.d, (float)(int8_t)byte_at(s + (64 + PANEL_ROWS * j + row)));
    }
    template <typename At>
    static __device__ __forceinline__ float offset(At, int, int, Row) { return 0.0f; }
};

using Signed16By1 = SuperScaleSigned<16, 1>;
using Signed16By8 = SuperScaleSigned<16, 8>;
using Signed32By1 = SuperScaleSigned<32, 1>;
using Signed32By4 = SuperScaleSigned<32, 4>;
using Signed32By8 = SuperScaleSigned<32, 8>;

struct PowerScale {
    static constexpr int SUB_BLOCK = 32;
    static constexpr bool HAS_OFFSET = false;
    static __host__ __device__ constexpr int section_bytes(int num_blocks) { return (16 * num_blocks + 63) / 64 * 64; }
    struct Row {};
    template <typename At>
    static __device__ __forceinline__ Row row_of(At, int) { return {}; }
    template <typename At>
    static __device__ __forceinline__ float weight(At s, int j, int row, Row) {
        const uint32_t e = byte_at(s + (PANEL_ROWS * j + row));
        return f32(e < 2 ? 0x00200000u << e : (e - 1) << 23);
    }
    template <typename At>
    static __device__ __forceinline__ float offset(At, int, int, Row) { return 0.0f; }
};

// ---- Geometry ----

/// One 256-block of a panel.
template <typename Q, typename S, typename At = const uint8_t*>
struct Step {
    /// Bytes of a step of all blocks.
    static constexpr int FULL = S::section_bytes(BLOCKS_PER_STEP) + BLOCKS_PER_STEP * Q::SUB_BLOCK_BYTES;
    At section, quants;
    int num_blocks;

    /// Step `index` of a panel that lies whole at `panel`.
    __device__ __forceinline__ Step(At panel, int blocks_of_k, int index)
        : Step(panel + index * FULL, min(blocks_of_k - index * BLOCKS_PER_STEP, BLOCKS_PER_STEP)) {}
    /// A step of `num_blocks` blocks that lies at `section`.
    __device__ __forceinline__ Step(At section, int num_blocks)
        : section(section), quants(section + S::section_bytes(num_blocks)), num_blocks(num_blocks) {}
};

// ---- Float matrices: groups of 16 rows, `[group][k][16]`. ----

struct F32 {
    using Stored = float;
    static __device__ __forceinline__ float value(float x) { return x; }
};
struct F16 {
    using Stored = uint16_t;
    static __device__ __forceinline__ float value(uint16_t x) { return __half2float(__ushort_as_half(x)); }
};
struct BF16 {
    using Stored = uint16_t;
    static __device__ __forceinline__ float value(uint16_t x) { return f32((uint32_t)x << 16); }
};

}  // namespace assay

/// Every block format: the name of its kernels, where its quants and its scales lie.
#define ASSAY_FORMATS(X)                                                      \
    X(q8_0, assay::U8<128>, assay::HalfScale)                                 \
    X(q4_0, assay::U4<8>, assay::HalfScale)                                   \
    X(q4_1, assay::U4<0>, assay::HalfScaleOffset)                             \
    X(q5_0, assay::U5<16>, assay::HalfScale)                                  \
    X(q5_1, assay::U5<0>, assay::HalfScaleOffset)                             \
    X(q4_k, assay::U4<0>, assay::SuperScaleOffset<32>)                        \
    X(q5_k, assay::U5<0>, assay::SuperScaleOffset<32>)                        \
    X(q6_k, assay::U6<32>, assay::Signed16By1)                               \
    X(q2_k, assay::U2<0>, assay::SuperScaleOffset<16>)                        \
    X(q3_k, assay::U3<4>, assay::Signed16By1)                                \
    ASSAY_LOOK_UP_FORMATS(X)

#define ASSAY_LOOK_UP_FORMATS(X)                                              \
    X(iq4_nl, assay::Iq4, assay::HalfScale)                                   \
    X(iq4_xs, assay::Iq4, assay::Signed32By1)                                \
    X(iq3_xxs, assay::Iq3Xxs, assay::Signed32By4)                            \
    X(iq3_s, assay::Iq3S, assay::Signed32By1)                                \
    X(iq2_xxs, assay::Iq2, assay::Signed32By8)                               \
    X(iq2_xs, assay::Iq2, assay::Signed16By8)                                \
    X(iq2_s, assay::Iq2, assay::Signed16By8)                                 \
    X(iq1_s, assay::Iq1, assay::Signed32By8)                                 \
    X(iq1_m, assay::Iq1, assay::Signed16By8)                                 \
    X(mxfp4, assay::Mxfp4, assay::PowerScale)

#define ASSAY_FLOATS(X) \
    X(f32, assay::F32)  \
    X(f16, assay::F16)  \
    X(bf16, assay::BF16)
