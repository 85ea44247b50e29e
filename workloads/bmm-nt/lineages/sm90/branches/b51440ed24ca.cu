/*klineage
surface = "cuda"

[[tunable]]
name = "TILE"
default = 32
values = [16, 32]

[[launch]]
kernel = "multiplyBatch"
grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)", "B"]
block = ["TILE", "TILE"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[b,M,N] = x[b,M,K] · weight[b,N,K]ᵀ for every b, bf16 in and out, fp32 sums. blockIdx.z is b.
//
// A block of TILE × TILE threads owns a square tile of y, one element a thread. Slabs of both operands, TILE rows
// by 4 · TILE numbers of k, are staged in shared memory: a number fetched once serves TILE products, and global
// loads run along k, 16 bytes a thread, exactly one chunk of 8 numbers a thread and slab pair.

#include <cuda_bf16.h>

constexpr int UNITS = TILE / 2;      // chunks of 8 numbers a row of a slab: 2 * TILE * UNITS chunks, one a thread
constexpr int DEPTH = UNITS * 8;     // numbers of k in a slab
constexpr int PITCH = UNITS + 1;     // odd, in units of 16 bytes: 8 rows at one k lie in different banks

static_assert(UNITS % 2 == 0, "the pitch must be odd");

// Two products of packed bf16 numbers, the lower k first.
static __device__ __forceinline__ float addProducts(unsigned int a, unsigned int b, float sum)
{
    sum = fmaf(__uint_as_float(a << 16), __uint_as_float(b << 16), sum);
    return fmaf(__uint_as_float(a & 0xffff0000u), __uint_as_float(b & 0xffff0000u), sum);
}

extern "C" __global__ void __launch_bounds__(TILE * TILE, 2048 / (TILE * TILE))
multiplyBatch(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ uint4 xs[TILE][PITCH];
    __shared__ uint4 ws[TILE][PITCH];

    x += size_t(blockIdx.z) * M * K;
    weight += size_t(blockIdx.z) * N * K;
    y += size_t(blockIdx.z) * M * N;

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row0 = blockIdx.y * TILE;
    const int col0 = blockIdx.x * TILE;

    // The first half of the threads stages x, the second half weight; lanes run along k.
    const int thread = ty * TILE + tx;
    const bool second = thread >= TILE * UNITS;
    const int chunk = second ? thread - TILE * UNITS : thread;
    const int r = chunk / UNITS;
    const int c = chunk % UNITS;
    const bool inside = second ? col0 + r < N : row0 + r < M;
    const __nv_bfloat16 *from = second ? weight + size_t(col0 + r) * K : x + size_t(row0 + r) * K;
    uint4 *to = second ? &ws[r][c] : &xs[r][c];

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        // K is a multiple of 8, so that a chunk lies wholly inside or wholly outside. Zeros add nothing to a sum.
        const int k = k0 + c * 8;
        uint4 numbers = make_uint4(0u, 0u, 0u, 0u);
        if (inside && k < K)
            numbers = *reinterpret_cast<const uint4 *>(from + k);

        __syncthreads();                         // before the slabs are overwritten
        *to = numbers;
        __syncthreads();                         // before the slabs are read

#pragma unroll
        for (int u = 0; u < UNITS; ++u) {
            const uint4 a = xs[ty][u];           // broadcast
            const uint4 b = ws[tx][u];
            sum = addProducts(a.x, b.x, sum);
            sum = addProducts(a.y, b.y, sum);
            sum = addProducts(a.z, b.z, sum);
            sum = addProducts(a.w, b.w, sum);
        }
    }

    // No early exit above: all threads stage chunks and meet at the barriers.
    const int row = row0 + ty;
    const int col = col0 + tx;
    if (row < M && col < N)
        y[size_t(row) * N + col] = __float2bfloat16(sum);
}
