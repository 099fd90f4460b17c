// Activations as 16-bit integers with one scale per 256 elements, split into two int8 and laid out as the B operand of
// an m16n8k32 product. A tile is four tokens: column 2i holds the upper halves of token i, column 2i+1 the lower.
#pragma once

#include "../cuda/hopper.cuh"
#include "../cuda/numerics.cuh"

namespace assay {

constexpr float A16_LIMIT = 32512.0f;

/// Where integers go; `words` is null where none are wanted.
struct Integers {
    uint32_t* words;  // [group][32-block][tile of the group][word of the quad pair][lane], lane = 4·column + pair
    float* scales;    // [group][256-block][128 places]
    float* sums;      // [group][32-block][128 places], rounded
    int* sums16;      // [tile][16 elements][4], exact
    int* sums32;      // [tile][32-block][4], exact
};

/// Tokens of a group.
constexpr int GROUP_TOKENS = 128;

/// Where the 64 words of a tile stand.
__host__ __device__ __forceinline__ size_t words_of(int tile, int block, int num_blocks) {
    constexpr int TILES = GROUP_TOKENS / 4;
    return (((size_t)(tile / TILES) * num_blocks + block) * TILES + tile % TILES) * 64;
}

/// Where a token's number stands among those of `index` of `count` blocks: a lane of a product, which has every fourth
/// token, reads the numbers of four tiles together.
__host__ __device__ __forceinline__ size_t place_of(int token, int index, int count) {
    const int within = token % GROUP_TOKENS, place = within / 16 * 16 + within % 4 * 4 + within / 4 % 4;
    return ((size_t)(token / GROUP_TOKENS) * count + index) * GROUP_TOKENS + place;
}

/// Elements `at..at + 8` of n; zero past the end.
__device__ __forceinline__ void load_eight(const float* from, int at, int n, float (&to)[8]) {
    if (n % 8 == 0 && at < n) {
        const float4 low = *(const float4*)(from + at), high = *(const float4*)(from + at + 4);
        to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
        to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) to[i] = at + i < n ? from[at + i] : 0.0f;
}

/// Stores what `load_eight` loads.
__device__ __forceinline__ void store_eight_of(float* to, int at, int n, const float (&values)[8]) {
    if (n % 8 == 0) {
        if (at >= n) return;
        *(float4*)(to + at) = make_float4(values[0], values[1], values[2], values[3]);
        *(float4*)(to + at + 4) = make_float4(values[4], values[5], values[6], values[7]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (at + i < n) to[at + i] = values[i];
    }
}

/// Quantises one 256-block of a row of k elements, a warp together: a lane has eight elements, zero past the row's end.
__device__ __forceinline__ void quantize_step(const float (&values)[8], int token, int step, int k, const Integers& to) {
    const int num_steps = (k + 255) / 256, num_blocks = k / 32;
    const int tile = token / 4, place = token % 4, lane = threadIdx.x % 32;
    const int block = step * 8 + lane / 4, pair = lane % 4;
    // Magnitudes order like their bits, and NaN is above everything.
    uint32_t largest = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) largest = max(largest, __float_as_uint(values[i]) & 0x7FFFFFFFu);
    largest = __reduce_max_sync(0xFFFFFFFFu, largest);
    const float amax = f32(largest);
    const bool is_finite = largest < 0x7F800000u;
    const bool is_zero = !is_finite || amax < f32((127 - 100) << 23);
    const float inverse = is_zero ? 0.0f : div(A16_LIMIT, amax);
    if (lane == 0) {
        const float scale = !is_finite ? f32(0x7FC00000) : is_zero ? 0.0f : div(amax, A16_LIMIT);
        to.scales[place_of(token, step, num_steps)] = scale;
    }
    uint32_t high[2] = {}, low[2] = {};
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float rounded = clamp(rintf(mul(values[i], inverse)), -A16_LIMIT, A16_LIMIT);
        const int a = is_zero ? 0 : (int)rounded;
        const int lo = (int)(int8_t)(a & 0xFF);
        const int hi = (a - lo) >> 8;
        sum += a;
        high[i / 4] |= (uint32_t)(hi & 0xFF) << (8 * (i % 4));
        low[i / 4] |= (uint32_t)(lo & 0xFF) << (8 * (i % 4));
    }
    const int sum_of_16 = sum + __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
    const int sum_of_32 = sum_of_16 + __shfl_xor_sync(0xFFFFFFFFu, sum_of_16, 2);
    if (block < num_blocks) {
        uint32_t* words = to.words + words_of(tile, block, num_blocks) + 8 * place + pair;
        words[0] = high[0], words[32] = high[1];
        words[4] = low[0], words[36] = low[1];
        if (pair % 2 == 0) to.sums16[((size_t)tile * 2 * num_blocks + 2 * block + pair / 2) * 4 + place] = sum_of_16;
        if (pair == 0) {
            to.sums32[((size_t)tile * num_blocks + block) * 4 + place] = sum_of_32;
            to.sums[place_of(token, block, num_blocks)] = __int2float_rn(sum_of_32);
        }
    }
}

}  // namespace assay
