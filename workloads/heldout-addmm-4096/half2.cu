/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 64)", "ceil_div(M, 64)"]
block = ["128"]
args = ["a", "b", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y = a · b + bias: a block of four warps makes 64×64 of y with mma.sync from padded bf16 tiles in shared memory, copied through
// registers between two barriers; what is still missing is asynchronous copies with more than one buffer, and larger tiles.

#include <cuda_bf16.h>

constexpr int TILE_M = 64;
constexpr int TILE_N = 64;
constexpr int DEPTH = 32;          // of K a step
constexpr int PITCH_A = DEPTH + 8; // 80 bytes: eight rows of ldmatrix fall into different banks
constexpr int PITCH_B = TILE_N + 8; // 144 bytes: likewise
constexpr int THREADS = 128;

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void multiply_add(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(128)
multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const __nv_bfloat16 *bias, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) __nv_bfloat16 tile_a[TILE_M][PITCH_A]; // [row][k]
    __shared__ __align__(16) __nv_bfloat16 tile_b[DEPTH][PITCH_B];  // [k][column]

    const int tid = threadIdx.x;
    const int lane = tid % 32;
    const int warp = tid / 32;
    const int warp_row = (warp / 2) * 32; // a warp owns 32×32 of the tile
    const int warp_col = (warp % 2) * 32;
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    float acc[2][4][4];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                acc[i][j][e] = 0.0f;

    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        // N and K are multiples of 8 (the workload says so): 8 neighbours are aligned, and inside or outside together.
#pragma unroll
        for (int c = tid; c < TILE_M * DEPTH / 8; c += THREADS) {
            const int r = c / (DEPTH / 8);
            const int k = c % (DEPTH / 8) * 8;
            uint4 v = make_uint4(0u, 0u, 0u, 0u);
            if (row0 + r < M && k0 + k < K)
                v = *reinterpret_cast<const uint4 *>(a + size_t(row0 + r) * K + k0 + k);
            *reinterpret_cast<uint4 *>(&tile_a[r][k]) = v;
        }
#pragma unroll
        for (int c = tid; c < DEPTH * TILE_N / 8; c += THREADS) {
            const int k = c / (TILE_N / 8);
            const int n = c % (TILE_N / 8) * 8;
            uint4 v = make_uint4(0u, 0u, 0u, 0u);
            if (k0 + k < K && col0 + n < N)
                v = *reinterpret_cast<const uint4 *>(b + size_t(k0 + k) * N + col0 + n);
            *reinterpret_cast<uint4 *>(&tile_b[k][n]) = v;
        }
        __syncthreads();

#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            unsigned fa[2][4]; // 16 rows × 16 of K each
            unsigned fb[2][4]; // 16 of K × 16 columns each: {0, 1} the left 8 columns, {2, 3} the right 8
#pragma unroll
            for (int i = 0; i < 2; ++i)
                load_matrices(fa[i], &tile_a[warp_row + i * 16 + lane % 16][k + lane / 16 * 8]);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(fb[j], &tile_b[k + lane % 16][warp_col + j * 16 + lane / 16 * 8]);
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply_add(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads();
    }

#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int col = col0 + warp_col + j * 8 + lane % 4 * 2; // even, and N is: two columns are in or out together
        if (col >= N)
            continue;
        const float add0 = __bfloat162float(bias[col]);
        const float add1 = __bfloat162float(bias[col + 1]);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int row = row0 + warp_row + i * 16 + lane / 4;
            if (row < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][0] + add0, acc[i][j][1] + add1);
            if (row + 8 < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row + 8) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][2] + add0, acc[i][j][3] + add1);
        }
    }
}
