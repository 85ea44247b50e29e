/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["256"]
args = ["a", "b", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y = a · b + bias: a block makes 128×128 of y from f32 tiles in shared memory, a thread 8×8 in registers by plain FMA; what is
// still missing is the tensor cores, and any overlap of the copies with the arithmetic.

#include <cuda_bf16.h>

constexpr int TILE = 128;       // rows and columns of y a block
constexpr int DEPTH = 16;       // of K a step
constexpr int PITCH = TILE + 4; // of the transposed tile of a; a multiple of 4, for float4 reads

// Eight bf16 of one 16-byte load, as f32. A bf16 is the upper half of an f32.
__device__ __forceinline__ void widen(const uint4 &packed, float (&out)[8])
{
    const unsigned word[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        out[2 * i] = __uint_as_float(word[i] << 16);
        out[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
    }
}

extern "C" __global__ void __launch_bounds__(256)
multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const __nv_bfloat16 *bias, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) float tile_a[DEPTH][PITCH]; // [k][row]
    __shared__ __align__(16) float tile_b[DEPTH][TILE];  // [k][column]

    const int tid = threadIdx.x;
    const int tx = tid % 16;
    const int ty = tid / 16;
    const int row0 = blockIdx.y * TILE;
    const int col0 = blockIdx.x * TILE;

    // What this thread copies: 8 neighbours along K of one row of a, 8 neighbours along N of one row of b. N and K are multiples
    // of 8 (the workload says so), so a group of 8 is aligned and lies wholly inside or wholly outside.
    const int a_row = tid / 2;
    const int a_k = (tid % 2) * 8;
    const int b_k = tid / 16;
    const int b_col = (tid % 16) * 8;

    float acc[8][8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j)
            acc[i][j] = 0.0f;

    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        uint4 pa = make_uint4(0u, 0u, 0u, 0u);
        uint4 pb = make_uint4(0u, 0u, 0u, 0u);
        if (row0 + a_row < M && k0 + a_k < K)
            pa = *reinterpret_cast<const uint4 *>(a + size_t(row0 + a_row) * K + k0 + a_k);
        if (k0 + b_k < K && col0 + b_col < N)
            pb = *reinterpret_cast<const uint4 *>(b + size_t(k0 + b_k) * N + col0 + b_col);

        float wide[8];
        widen(pa, wide);
#pragma unroll
        for (int i = 0; i < 8; ++i)
            tile_a[a_k + i][a_row] = wide[i];
        widen(pb, wide);
        *reinterpret_cast<float4 *>(&tile_b[b_k][b_col]) = make_float4(wide[0], wide[1], wide[2], wide[3]);
        *reinterpret_cast<float4 *>(&tile_b[b_k][b_col + 4]) = make_float4(wide[4], wide[5], wide[6], wide[7]);
        __syncthreads();

#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            // Two groups of four, half a tile apart, in either direction: reads of shared memory without conflicts.
            const float4 a_lo = *reinterpret_cast<const float4 *>(&tile_a[k][ty * 4]);
            const float4 a_hi = *reinterpret_cast<const float4 *>(&tile_a[k][TILE / 2 + ty * 4]);
            const float4 b_lo = *reinterpret_cast<const float4 *>(&tile_b[k][tx * 4]);
            const float4 b_hi = *reinterpret_cast<const float4 *>(&tile_b[k][TILE / 2 + tx * 4]);
            const float fa[8] = {a_lo.x, a_lo.y, a_lo.z, a_lo.w, a_hi.x, a_hi.y, a_hi.z, a_hi.w};
            const float fb[8] = {b_lo.x, b_lo.y, b_lo.z, b_lo.w, b_hi.x, b_hi.y, b_hi.z, b_hi.w};
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    acc[i][j] = fmaf(fa[i], fb[j], acc[i][j]);
        }
        __syncthreads();
    }

#pragma unroll
    for (int side = 0; side < 2; ++side) {
        const int col = col0 + side * (TILE / 2) + tx * 4; // a multiple of 4, N one of 8: four columns are in or out together
        if (col >= N)
            continue;
        float add[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
            add[j] = __bfloat162float(bias[col + j]);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int row = row0 + (i / 4) * (TILE / 2) + ty * 4 + i % 4;
            if (row < M) {
                __nv_bfloat162 *out = reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col);
                out[0] = __floats2bfloat162_rn(acc[i][side * 4] + add[0], acc[i][side * 4 + 1] + add[1]);
                out[1] = __floats2bfloat162_rn(acc[i][side * 4 + 2] + add[2], acc[i][side * 4 + 3] + add[3]);
            }
        }
    }
}
