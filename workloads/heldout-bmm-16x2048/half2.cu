/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 64)", "ceil_div(M, 64)", "B"]
block = ["32", "4"]
args = ["a", "b", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i] on the tensor cores (mma.sync m16n8k16): 64 x 64 blocks of y, four warps of 32 x 32, 32-deep slices in shared memory;
// still missing are larger tiles and any overlap of the copies, which are synchronous, with the arithmetic.
//
// N and K are multiples of 8, so a chunk of eight neighbours in a row is wholly inside or wholly outside, and aligned to 16 bytes.

#include <cuda_bf16.h>

#define BM 64
#define BN 64
#define BK 32
#define THREADS 128
#define LDA (BK + 8) // 80 bytes a row: eight rows of ldmatrix fall into different banks
#define LDB (BN + 8) // 144 bytes a row: likewise

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
    return unsigned(__cvta_generic_to_shared(p));
}

static __device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ unsigned narrow(float low, float high)
{
    return unsigned(__bfloat16_as_ushort(__float2bfloat16(low))) |
           (unsigned(__bfloat16_as_ushort(__float2bfloat16(high))) << 16);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) __nv_bfloat16 sa[BM * LDA];
    __shared__ __align__(16) __nv_bfloat16 sb[BK * LDB];

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int tid = warp * 32 + lane;
    const int warp_row = (warp / 2) * 32;
    const int warp_col = (warp % 2) * 32;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;

    a += size_t(blockIdx.z) * M * K;
    b += size_t(blockIdx.z) * K * N;
    y += size_t(blockIdx.z) * M * N;

    float sum[2][4][4];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    for (int k0 = 0; k0 < K; k0 += BK) {
        // a: 64 rows of 4 chunks; what lies outside is zero.
#pragma unroll
        for (int s = 0; s < BM * (BK / 8) / THREADS; ++s) {
            const int c = s * THREADS + tid;
            const int r = c / (BK / 8);
            const int k = (c % (BK / 8)) * 8;
            uint4 v = make_uint4(0u, 0u, 0u, 0u);
            if (row0 + r < M && k0 + k < K)
                v = *reinterpret_cast<const uint4 *>(a + size_t(row0 + r) * K + k0 + k);
            *reinterpret_cast<uint4 *>(sa + r * LDA + k) = v;
        }
        // b: 32 rows of 8 chunks.
#pragma unroll
        for (int s = 0; s < BK * (BN / 8) / THREADS; ++s) {
            const int c = s * THREADS + tid;
            const int k = c / (BN / 8);
            const int n = (c % (BN / 8)) * 8;
            uint4 v = make_uint4(0u, 0u, 0u, 0u);
            if (k0 + k < K && col0 + n < N)
                v = *reinterpret_cast<const uint4 *>(b + size_t(k0 + k) * N + col0 + n);
            *reinterpret_cast<uint4 *>(sb + k * LDB + n) = v;
        }
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned fa[2][4];
            unsigned fb[2][4]; // each holds two column groups of eight
#pragma unroll
            for (int i = 0; i < 2; ++i)
                load_matrices(fa[i], shared_address(sa + (warp_row + i * 16 + lane % 16) * LDA + k + (lane / 16) * 8));
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(
                    fb[j], shared_address(sb + (k + lane % 16) * LDB + warp_col + j * 16 + (lane / 16) * 8));
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply_add(sum[i][j], fa[i], fb[j / 2][(j % 2) * 2], fb[j / 2][(j % 2) * 2 + 1]);
        }
        __syncthreads();
    }

    // A lane holds two neighbours of row lane / 4 and two of the row eight below; N is even, so pairs are not cut.
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = row0 + warp_row + i * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + warp_col + j * 8 + (lane % 4) * 2;
            if (col >= N)
                continue;
            if (row < M)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < M)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
}
