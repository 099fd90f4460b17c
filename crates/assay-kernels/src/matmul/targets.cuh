// What a launch of a product multiplies, and where the results go.
#pragma once

#include "../quantize/quantize.cuh"
#include "layout.cuh"

namespace assay {

/// Quantised activations, as `Integers` are left.
struct Activations {
    const uint32_t* words;
    const float* scales;
    const float* sums;
    const int* sums16;
    const int* sums32;
};

/// This lane's B operand of a tile and 32-block.
__device__ __forceinline__ uint2 words_at(const Activations& x, int tile, int block, int num_blocks) {
    const uint32_t* words = x.words + words_of(tile, block, num_blocks) + threadIdx.x % 32;
    return make_uint2(__ldg(words), __ldg(words + 32));
}

/// `c = a·b + c` of m16n8k32, both signed.
__device__ __forceinline__ void product_signed(int (&c)[4], const uint32_t (&a)[4], uint2 b) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

/// Up to three matrices of one type and k that multiply the same rows, their panels one after another.
struct Targets {
    const uint8_t* panels[3];
    const float* bias[3];
    float* out[3];
    int n[3];
    int end_panel[3];  // of this matrix in the row of all panels
    int adds;          // to what `out` holds, instead of replacing it
};

/// Entry i of three; an index into a kernel's argument would move it to memory.
template <typename T>
__device__ __forceinline__ T choose(const T (&of)[3], int i) {
    return i == 0 ? of[0] : i == 1 ? of[1] : of[2];
}

/// One matrix of a launch.
struct Target {
    const float* bias;
    float* out;
    int n, adds;

    /// What one row and token have beside the product.
    struct Beside {
        float bias, old;
    };
    __device__ __forceinline__ Beside beside(int row, int token) const {
        return {bias ? bias[row] : 0.0f, adds ? out[(size_t)token * n + row] : 0.0f};
    }
    /// `y` of one row and token, stored.
    __device__ __forceinline__ void store(int row, int token, float y, Beside with) const {
        if (bias) y = add(y, with.bias);
        out[(size_t)token * n + row] = adds ? add(with.old, y) : y;
    }
    __device__ __forceinline__ void store(int row, int token, float y) const { store(row, token, y, beside(row, token)); }
};

/// The matrix that panel `index` of all belongs to; `index` becomes that within the matrix, `panels` its panels.
__device__ __forceinline__ Target find(const Targets& targets, int& index, const uint8_t*& panels) {
    const int i = (index >= targets.end_panel[0]) + (index >= targets.end_panel[1]);
    index -= i == 0 ? 0 : choose(targets.end_panel, i - 1);
    panels = choose(targets.panels, i);
    return {choose(targets.bias, i), choose(targets.out, i), choose(targets.n, i), targets.adds};
}

}  // namespace assay
