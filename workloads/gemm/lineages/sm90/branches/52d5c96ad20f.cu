/*klineage
surface = "cuda"

[[tunable]]
name = "BK"
default = 32
values = [16, 32, 64]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["16", "16"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// A thread owns an 8 × 8 patch of y in registers, strided by 16 rows and columns. Operands move in chunks of
// 16 bytes: 8 numbers along K of a row from global memory; a pair of k of four rows of a patch to and from
// shared memory. So two steps along K read 2 + 2 chunks and make 128 products of them.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128;
constexpr int TM = BM / 16, TN = BN / 16;
static_assert(BM == BN && TM == 8 && TN == 8, "two quads of rows, and two of columns, a thread");

constexpr int CHUNKS = BK / 8;          // chunks of 8 numbers in a row of a tile
constexpr int QUADS = BM / 4;           // quad q is the rows q % 16 + 64 * (q / 16) + {0, 16, 32, 48}
constexpr int GROUPS = QUADS * CHUNKS;  // a group is one chunk of each row of a quad: what a thread loads at once
constexpr int STEPS = (2 * GROUPS + 255) / 256;

// Where a shared row keeps a quad. Eight neighbouring lanes store CHUNKS chunks of 8 / CHUNKS quads, whose rows all
// begin at bank 0: with the chunk's number in the upper of the three bits they fall into different banks. Lanes that
// load read one chunk of neighbouring quads, only permuted among eight.
__device__ __forceinline__ int slot(int quad, int chunk)
{
    return quad ^ (chunk * (8 / CHUNKS));
}

extern "C" __global__ __launch_bounds__(256, 2) void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                          __nv_bfloat16 *y, int M, int N, int K)
{
    // [x or weight][pair of k][slot of a quad]: 4 rows × 2 numbers along K.
    __shared__ uint4 tile[2][BK / 2][QUADS];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;

    float acc[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
        // K is a multiple of 8: a chunk is wholly inside or wholly outside.
        uint4 v[STEPS][4];
#pragma unroll
        for (int i = 0; i < STEPS; ++i) {
            const int g = thread + 256 * i;
            const bool of_x = g < GROUPS;
            const int chunk = g % CHUNKS, quad = g / CHUNKS % QUADS;
            const int r = (of_x ? row0 : col0) + quad % 16 + 64 * (quad / 16);
            const int rows = of_x ? M : N;
            const int k = k0 + 8 * chunk;
            const __nv_bfloat16 *from = (of_x ? x : weight) + size_t(r) * K + k;
            const bool inside = k < K && (2 * GROUPS % 256 == 0 || g < 2 * GROUPS);
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                v[i][s] = make_uint4(0, 0, 0, 0);
                if (inside && r + 16 * s < rows)
                    v[i][s] = *reinterpret_cast<const uint4 *>(from + size_t(16 * s) * K);
            }
        }
#pragma unroll
        for (int i = 0; i < STEPS; ++i) {
            const int g = thread + 256 * i;
            if (2 * GROUPS % 256 == 0 || g < 2 * GROUPS) {
                const int chunk = g % CHUNKS, quad = g / CHUNKS % QUADS;
                uint4 *to = &tile[g / GROUPS][4 * chunk][slot(quad, chunk)];
                to[0 * QUADS] = make_uint4(v[i][0].x, v[i][1].x, v[i][2].x, v[i][3].x);
                to[1 * QUADS] = make_uint4(v[i][0].y, v[i][1].y, v[i][2].y, v[i][3].y);
                to[2 * QUADS] = make_uint4(v[i][0].z, v[i][1].z, v[i][2].z, v[i][3].z);
                to[3 * QUADS] = make_uint4(v[i][0].w, v[i][1].w, v[i][2].w, v[i][3].w);
            }
        }
        __syncthreads();

#pragma unroll 1
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            const uint4 *xs = &tile[0][4 * chunk][slot(ty, chunk)];
            const uint4 *ws = &tile[1][4 * chunk][slot(tx, chunk)];
#pragma unroll
            for (int p = 0; p < 4; ++p) {
                const uint4 a0 = xs[p * QUADS], a1 = xs[p * QUADS + 16];
                const uint4 b0 = ws[p * QUADS], b1 = ws[p * QUADS + 16];
                const unsigned aw[TM] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
                const unsigned bw[TN] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    // A bf16 is the upper half of its float.
                    float a[TM], b[TN];
#pragma unroll
                    for (int i = 0; i < TM; ++i)
                        a[i] = __uint_as_float(h ? aw[i] & 0xffff0000u : aw[i] << 16);
#pragma unroll
                    for (int j = 0; j < TN; ++j)
                        b[j] = __uint_as_float(h ? bw[j] & 0xffff0000u : bw[j] << 16);
#pragma unroll
                    for (int i = 0; i < TM; ++i)
#pragma unroll
                        for (int j = 0; j < TN; ++j)
                            acc[i][j] += a[i] * b[j];
                }
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(acc[i][j]);
        }
}
