/*klineage
surface = "cuda"

[[launch]]
kernel = "kkt_solve"
grid = ["HV", "ceil_div(T, 64)", "B"]
block = [256]
shared = "64 * 65 * 4 + 64 * 72 * 4"
args = ["k", "g", "beta", "a", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inverse triangular matrices of the gated delta rule: L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s] below the diagonal, with G the
// sums of the log gates within the chunk, and the inverse of I + L by forward substitution. A block has one chunk of 64 tokens of
// one head. It brings the chunk's keys to a swizzled tile in shared memory once, in whole lines; its warps compute k . k^T on tensor
// cores, 16 rows a warp, and scale the fragments to the entries of L; 64 threads compute a column of the inverse each, where the
// keys were.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64;   // C tokens a chunk
constexpr int UNITS = D / 8;     // of 16 bytes, in a row of keys; unit u of row r lies at u ^ (r % 8)
constexpr int SYSTEM_PITCH = 72; // of rows in words: pairs of 4 rows of a fragment lie in different banks
constexpr int PITCH = 65;        // of rows in words: 32 rows lie in different banks

__device__ __forceinline__ void load_matrices(unsigned (&x)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&x)[4], unsigned y0, unsigned y1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y0), "r"(y1));
}

// A warp's entries of L: the 16 rows of a band and, of each 16 columns from 16 FIRST on, TILES times, the 8 of this half.
template <int BAND, int FIRST, int TILES>
__device__ __forceinline__ void entries(unsigned tile, int half, int lane, const float *sums, const float *betas,
                                        float (*system)[SYSTEM_PITCH])
{
    const unsigned rowsX = tile + (16 * BAND + lane % 16) * (UNITS * 16);
    const unsigned rowsY = tile + (16 * FIRST + 8 * half + lane % 8) * (UNITS * 16);
    const int swizzle = lane % 8; // of all rows that this lane addresses

    float product[TILES][4];
#pragma unroll
    for (int j = 0; j < TILES; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            product[j][i] = 0.0f;

#pragma unroll
    for (int step = 0; step < D / 32; ++step) {
        unsigned x[2][4], y[2][4];
        const unsigned columns = rowsY + (((4 * step + lane / 8) ^ swizzle) * 16); // 8 of them, four units: 32 of the inner dimension
        load_matrices(y[0], columns);
        // Rows 0-7 and 8-15 of one unit, then of the next: 16 of the inner dimension
        load_matrices(x[0], rowsX + (((4 * step + lane / 16) ^ swizzle) * 16));
        load_matrices(x[1], rowsX + (((4 * step + 2 + lane / 16) ^ swizzle) * 16));
#pragma unroll
        for (int j = 0; j < TILES; ++j) {
            if (j + 1 < TILES)
                load_matrices(y[(j + 1) % 2], columns + (j + 1) * (16 * UNITS * 16));
            multiply(product[j], x[0], y[j % 2][0], y[j % 2][1]);
            multiply(product[j], x[1], y[j % 2][2], y[j % 2][3]);
        }
    }

#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
        const int t = 16 * BAND + 8 * upper + lane / 4;
        const float sum = sums[t], factor = betas[t];
#pragma unroll
        for (int j = 0; j < TILES; ++j) {
            const int s = 16 * (FIRST + j) + 8 * half + 2 * (lane % 4);
            const bool below = FIRST + j < BAND; // the whole tile
            float2 pair = make_float2(0.0f, 0.0f);
            if (below || s < t)
                pair.x = factor * expf(sum - sums[s]) * product[j][2 * upper];
            if (below || s + 1 < t)
                pair.y = factor * expf(sum - sums[s + 1]) * product[j][2 * upper + 1];
            *reinterpret_cast<float2 *>(&system[t][s]) = pair;
        }
    }
}

// Six blocks an SM, as many as shared memory holds.
extern "C" __global__ void __launch_bounds__(256, 6)
    kkt_solve(const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g, const float *__restrict__ beta,
              __nv_bfloat16 *__restrict__ a, int T, int HQ, int HV)
{
    extern __shared__ __align__(128) unsigned char dynamicShared[];
    __shared__ float sums[C], betas[C];
    // The tile of keys has no padding and is dead once k . k^T is known: the inverse takes its place.
    uint4(*keys)[UNITS] = reinterpret_cast<uint4(*)[UNITS]>(dynamicShared); // units of 8 bf16, swizzled
    float(*inverse)[PITCH] = reinterpret_cast<float(*)[PITCH]>(dynamicShared);
    float(*system)[SYSTEM_PITCH] = reinterpret_cast<float(*)[SYSTEM_PITCH]>(inverse + C);
    static_assert(C * UNITS * 16 <= C * PITCH * 4, "the keys fit in the place of the inverse");

    const int head = blockIdx.x, chunk = blockIdx.y, thread = threadIdx.x;
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(blockIdx.z) * T + chunk * C;
    const __nv_bfloat16 *from = k + (token * HQ + head / (HV / HQ)) * D;

    const int unit = thread % UNITS;
#pragma unroll
    for (int i = 0; i < C * UNITS / 256; ++i) {
        const int row = thread / UNITS + i * (256 / UNITS);
        uint4 value = make_uint4(0u, 0u, 0u, 0u);
        if (row < valid)
            value = *reinterpret_cast<const uint4 *>(from + size_t(row) * HQ * D + 8 * unit);
        keys[row][unit ^ (row % 8)] = value;
    }
    if (thread < C) {
        float sum = 0.0f;
        for (int s = 0; s <= thread; ++s)
            sum += s < valid ? g[(token + s) * HV + head] : 0.0f;
        sums[thread] = sum;
        betas[thread] = thread < valid ? beta[(token + thread) * HV + head] : 0.0f;
    }
    __syncthreads();

    // Warps w and w + 4 share a quarter of the SM: they get bands w and 3 - w of 16 rows, so that all quarters have 5 tiles.
    {
        const int warp = thread / 32, lane = thread % 32, half = warp / 4;
        const unsigned tile = static_cast<unsigned>(__cvta_generic_to_shared(dynamicShared));
        switch (half == 0 ? warp : 7 - warp) {
        case 0:
            entries<0, 0, 1>(tile, half, lane, sums, betas, system);
            break;
        case 1:
            entries<1, 0, 2>(tile, half, lane, sums, betas, system);
            break;
        case 2:
            entries<2, 0, 3>(tile, half, lane, sums, betas, system);
            break;
        default:
            // In two parts: all four tiles at once would take more than the 40 registers that six blocks leave a thread.
            entries<3, 0, 2>(tile, half, lane, sums, betas, system);
            entries<3, 2, 2>(tile, half, lane, sums, betas, system);
            break;
        }
    }
    __syncthreads(); // L is complete, and no warp reads keys any more

    // Columns do not meet: each thread reads only what it wrote itself.
    if (thread < C) {
        for (int t = 0; t < valid; ++t) {
            float entry = t == thread ? 1.0f : 0.0f;
            for (int s = 0; s < t; ++s)
                entry -= system[t][s] * inverse[s][thread];
            inverse[t][thread] = entry;
            a[((token + t) * HV + head) * C + thread] = __float2bfloat16(entry);
        }
    }
}
