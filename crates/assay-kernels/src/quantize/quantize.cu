// Activations as 16-bit integers with one scale per 256 elements, split into two int8 and laid out as the B operand of
// an m16n8k32 product. A tile is four tokens: column 2i holds the upper halves of token i, column 2i+1 the lower.
#include "../cuda/numerics.cuh"

namespace assay {

constexpr float A16_LIMIT = 32512.0f;

/// A warp a token and 256-block; a lane eight elements, of which four make a quad. Tokens past the last are zero.
///
/// words: `[tile][32-block][lane][2]`, lane = 4·column + pair · scales: `[tile][256-block][4]` ·
/// sums16: `[tile][16 elements][4]`, sums32: `[tile][32-block][4]`, exact integer sums.
__device__ __forceinline__ void quantize_a16(
    const float* x, int num_tokens, int k, uint2* words, float* scales, int* sums16, int* sums32) {
    const int num_steps = (k + 255) / 256, num_blocks = k / 32;
    const int step = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (step >= num_steps) return;
    const int token = blockIdx.y, tile = token / 4, place = token % 4;
    const int lane = threadIdx.x % 32;
    const int block = step * 8 + lane / 4, pair = lane % 4;
    const bool is_inside = block < num_blocks && token < num_tokens;

    float values[8] = {};
    if (is_inside) {
        const float4* from = (const float4*)(x + (size_t)token * k + step * 256 + lane * 8);
        const float4 a = from[0], b = from[1];
        values[0] = a.x, values[1] = a.y, values[2] = a.z, values[3] = a.w;
        values[4] = b.x, values[5] = b.y, values[6] = b.z, values[7] = b.w;
    }
    // Magnitudes order like their bits, and NaN is above everything.
    uint32_t largest = 0;
    for (int i = 0; i < 8; i++) largest = max(largest, __float_as_uint(values[i]) & 0x7FFFFFFFu);
    largest = __reduce_max_sync(0xFFFFFFFFu, largest);
    const float amax = f32(largest);
    const bool is_finite = largest < 0x7F800000u;
    const bool is_zero = !is_finite || amax < f32((127 - 100) << 23);
    const float inverse = is_zero ? 0.0f : div(A16_LIMIT, amax);
    if (lane == 0) {
        const float scale = !is_finite ? f32(0x7FC00000) : is_zero ? 0.0f : div(amax, A16_LIMIT);
        scales[((size_t)tile * num_steps + step) * 4 + place] = scale;
    }

    uint32_t high[2] = {}, low[2] = {};
    int sum = 0;
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
        uint2* to = words + ((size_t)tile * num_blocks + block) * 32;
        to[8 * place + pair] = make_uint2(high[0], high[1]);
        to[8 * place + 4 + pair] = make_uint2(low[0], low[1]);
        if (pair % 2 == 0) sums16[((size_t)tile * 2 * num_blocks + 2 * block + pair / 2) * 4 + place] = sum_of_16;
        if (pair == 0) sums32[((size_t)tile * num_blocks + block) * 4 + place] = sum_of_32;
    }
}

}  // namespace assay

extern "C" __global__ void quantize_a16(
    const float* x, int num_tokens, int k, uint2* words, float* scales, int* sums16, int* sums32) {
    assay::quantize_a16(x, num_tokens, k, words, scales, sums16, sums32);
}
