/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)", "B"]
block = ["32", "8"]
args = ["a", "b", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i] with mma.sync: 128 x 128 blocks of y, eight warps of 64 x 32, 32-deep slices double-buffered in shared memory by cp.async;
// still missing are wgmma fed by TMA, a deeper pipeline with specialized warps, an order of blocks that suits L2, and wide stores of y.
//
// N and K are multiples of 8, so a chunk of eight neighbours in a row is wholly inside or wholly outside, and aligned to 16 bytes.

#include <cuda_bf16.h>

#define BM 128
#define BN 128
#define BK 32
#define THREADS 256
#define LDA (BK + 8) // 80 bytes a row: eight rows of ldmatrix fall into different banks
#define LDB (BN + 8) // 272 bytes a row: likewise
#define A_ELEMENTS (BM * LDA)
#define B_ELEMENTS (BK * LDB)

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
    return unsigned(__cvta_generic_to_shared(p));
}

// Sixteen bytes from global to shared memory; zeros, and nothing read, where inside is false.
static __device__ __forceinline__ void copy_async(unsigned to, const void *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all groups but the newest have arrived.
static __device__ __forceinline__ void wait_for_all_but_one()
{
    asm volatile("cp.async.wait_group 1;" ::: "memory");
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

// Starts the copies of the slices of a and b that begin at k0.
static __device__ __forceinline__ void start_slice(unsigned sa, unsigned sb, const __nv_bfloat16 *a,
                                                   const __nv_bfloat16 *b, int tid, int row0, int col0, int k0, int M,
                                                   int N, int K)
{
#pragma unroll
    for (int s = 0; s < BM * (BK / 8) / THREADS; ++s) { // a: 128 rows of 4 chunks
        const int c = s * THREADS + tid;
        const int r = c / (BK / 8);
        const int k = (c % (BK / 8)) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        const __nv_bfloat16 *from = inside ? a + size_t(row0 + r) * K + k0 + k : a;
        copy_async(sa + (r * LDA + k) * 2, from, inside);
    }
#pragma unroll
    for (int s = 0; s < BK * (BN / 8) / THREADS; ++s) { // b: 32 rows of 16 chunks
        const int c = s * THREADS + tid;
        const int k = c / (BN / 8);
        const int n = (c % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + n < N;
        const __nv_bfloat16 *from = inside ? b + size_t(k0 + k) * N + col0 + n : b;
        copy_async(sb + (k * LDB + n) * 2, from, inside);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) __nv_bfloat16 sa[2 * A_ELEMENTS]; // both together: 37888 bytes
    __shared__ __align__(16) __nv_bfloat16 sb[2 * B_ELEMENTS];

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int tid = warp * 32 + lane;
    const int warp_row = (warp / 4) * 64;
    const int warp_col = (warp % 4) * 32;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;

    a += size_t(blockIdx.z) * M * K;
    b += size_t(blockIdx.z) * K * N;
    y += size_t(blockIdx.z) * M * N;

    const unsigned sa0 = shared_address(sa);
    const unsigned sb0 = shared_address(sb);
    // Where in a slice this lane points ldmatrix, in bytes.
    const unsigned a_lane = ((warp_row + lane % 16) * LDA + (lane / 16) * 8) * 2;
    const unsigned b_lane = ((lane % 16) * LDB + warp_col + (lane / 16) * 8) * 2;

    float sum[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    const int slices = (K + BK - 1) / BK;
    start_slice(sa0, sb0, a, b, tid, row0, col0, 0, M, N, K);
    commit_copies();

    for (int t = 0; t < slices; ++t) {
        const int now = t & 1;
        const int next = now ^ 1;
        if (t + 1 < slices)
            start_slice(sa0 + next * (A_ELEMENTS * 2), sb0 + next * (B_ELEMENTS * 2), a, b, tid, row0, col0,
                        (t + 1) * BK, M, N, K);
        commit_copies(); // an empty group after the last slice keeps the count right
        wait_for_all_but_one();
        __syncthreads();

        const unsigned a_now = sa0 + now * (A_ELEMENTS * 2) + a_lane;
        const unsigned b_now = sb0 + now * (B_ELEMENTS * 2) + b_lane;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned fa[4][4];
            unsigned fb[2][4]; // each holds two column groups of eight
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load_matrices(fa[i], a_now + (i * 16 * LDA + k) * 2);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(fb[j], b_now + (k * LDB + j * 16) * 2);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply_add(sum[i][j], fa[i], fb[j / 2][(j % 2) * 2], fb[j / 2][(j % 2) * 2 + 1]);
        }
        __syncthreads(); // the next turn overwrites the slice just read
    }

    // A lane holds two neighbours of row lane / 4 and two of the row eight below; N is even, so pairs are not cut.
#pragma unroll
    for (int i = 0; i < 4; ++i) {
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
