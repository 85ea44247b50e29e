/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 128)", "ceil_div(T, 128) + G"]
block = ["256"]
args = ["a", "b", "offsets", "y", "int G", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block makes a 128x128 tile of one group with mma.sync, eight warps of 64x32, from two slabs in shared memory that cp.async fills in turn;
// still missing are a deeper pipeline, fragments loaded ahead of use, an order of tiles that minds the L2 cache, and all that is Hopper's own
// (TMA, wgmma, specialized warps, persistence).

#include <cuda_bf16.h>

constexpr int BM = 128;
constexpr int BN = 128;
constexpr int BK = 32;
constexpr int THREADS = 256;
constexpr int LDA = BK + 8; // 80 bytes a row: eight rows of a fragment fall in different banks
constexpr int LDB = BN + 8; // 272 bytes a row, likewise
constexpr int A_SLAB = BM * LDA;
constexpr int B_SLAB = BK * LDB;

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    unsigned long long s;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(s) : "l"(p));
    return static_cast<unsigned>(s);
}

// Copies 16 bytes, or writes 16 bytes of zeros where `inside` is false; then nothing is read.
__device__ __forceinline__ void copy_async(unsigned to, const void *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&x)[4], unsigned w0, unsigned w1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w0), "r"(w1));
}

__device__ __forceinline__ unsigned narrow(float low, float high)
{
    const unsigned l = __bfloat16_as_ushort(__float2bfloat16(low));
    const unsigned h = __bfloat16_as_ushort(__float2bfloat16(high));
    return l | (h << 16);
}

// Starts the copies of the slabs that begin at k0. N and K are multiples of 8: a vector of 8 elements is aligned, and all inside or all outside.
__device__ __forceinline__ void start_slabs(unsigned as, unsigned bs, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int first, int end,
                                            int col0, int k0, int N, int K)
{
    const int t = threadIdx.x;
#pragma unroll
    for (int i = 0; i < BM * BK / 8 / THREADS; ++i) {
        const int v = i * THREADS + t;
        const int r = v / (BK / 8);
        const int k = (v % (BK / 8)) * 8;
        const bool inside = first + r < end && k0 + k < K;
        copy_async(as + 2 * (r * LDA + k), inside ? a + size_t(first + r) * K + k0 + k : a, inside);
    }
#pragma unroll
    for (int i = 0; i < BK * BN / 8 / THREADS; ++i) {
        const int v = i * THREADS + t;
        const int k = v / (BN / 8);
        const int c = (v % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + c < N;
        copy_async(bs + 2 * (k * LDB + c), inside ? b + size_t(k0 + k) * N + col0 + c : b, inside);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const int *offsets,
                                                               __nv_bfloat16 *y, int G, int N, int K)
{
    __shared__ __align__(16) unsigned short As[2 * A_SLAB]; // 20 KiB
    __shared__ __align__(16) unsigned short Bs[2 * B_SLAB]; // 17 KiB

    // The grid has room for one part-filled tile a group: find the tile of this block, or leave. The answer is the same for the whole block.
    int tile = blockIdx.y;
    int group = 0, first = 0, end = 0;
    for (; group < G; ++group) {
        const int lo = offsets[group];
        const int hi = offsets[group + 1];
        const int tiles = (hi - lo + BM - 1) / BM;
        if (tile < tiles) {
            first = lo + tile * BM;
            end = hi;
            break;
        }
        tile -= tiles;
    }
    if (group == G)
        return;
    b += size_t(group) * K * N;

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int wm = (warp / 4) * 64;
    const int wn = (warp % 4) * 32;
    const int col0 = blockIdx.x * BN;

    const unsigned as = shared_address(As);
    const unsigned bs = shared_address(Bs);
    // What this lane points ldmatrix at: 16 rows in the low half-warp, the same rows 8 columns further in the high one.
    const unsigned a_offset = 2 * ((wm + lane % 16) * LDA + (lane / 16) * 8);
    const unsigned b_offset = 2 * ((lane % 16) * LDB + wn + (lane / 16) * 8);

    float sum[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    const int steps = (K + BK - 1) / BK;
    start_slabs(as, bs, a, b, first, end, col0, 0, N, K);
    asm volatile("cp.async.commit_group;" : : : "memory");

    for (int step = 0; step < steps; ++step) {
        const int now = step % 2;
        const int next = 1 - now;
        if (step + 1 < steps)
            start_slabs(as + 2 * next * A_SLAB, bs + 2 * next * B_SLAB, a, b, first, end, col0, (step + 1) * BK, N, K);
        asm volatile("cp.async.commit_group;" : : : "memory"); // empty at the last step, so that the count below holds
        asm volatile("cp.async.wait_group 1;" : : : "memory");
        __syncthreads();

        const unsigned a_address = as + 2 * now * A_SLAB + a_offset;
        const unsigned b_address = bs + 2 * now * B_SLAB + b_offset;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned x[4][4];
            unsigned w[2][4]; // each: 16 of k by 16 columns
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load_matrices(x[i], a_address + 2 * (i * 16 * LDA + k));
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(w[j], b_address + 2 * (k * LDB + j * 16));
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    mma(sum[i][j], x[i], w[j / 2][(j % 2) * 2], w[j / 2][(j % 2) * 2 + 1]);
        }
        __syncthreads(); // the next step's copies overwrite this slab
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + wn + j * 8 + (lane % 4) * 2; // even, as N is: both columns inside or none
            if (col >= N)
                continue;
            const int row = first + wm + i * 16 + lane / 4;
            if (row < end)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < end)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
}
