/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3, 4]

[[launch]]
kernel = "linear"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["16", "16"]
shared = "STAGES * (128 + 128) * 64 * 2"
args = ["x", "weight", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ + bias[N], bf16 in and out, fp32 sums.
//
// Shared memory is a ring of STAGES slabs (what one turn of the k-loop needs: BK numbers of all
// BM + BN rows) that cp.async fills STAGES - 1 slabs ahead. The copies bypass the registers and run while
// the block multiplies: a global load's latency is hidden behind whole slabs of arithmetic, and one
// barrier a slab is enough.
// The products are made on the tensor cores: ldmatrix takes the fragments from the swizzled chunks without
// bank conflicts, and mma.sync m16n8k16 multiplies them with fp32 sums. Each of the 8 warps (2 × 4) has a
// patch of WM × WN of the block's tile.
// Needs K % 8 == 0, so that a chunk is inside the matrix or outside, never half, and N % 2 == 0, as a lane
// stores two neighbouring results at once.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128, BK = 64;
constexpr int WM = 64, WN = 32;            // a warp's patch
constexpr int TM = WM / 16, TN = WN / 8;   // its tiles of 16 × 8
constexpr int CHUNKS = BK / 8;
constexpr int STAGE_CHUNKS = (BM + BN) * CHUNKS;

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

// Row r keeps chunk c at place c ^ (r % 8): eight neighbouring rows cover all 32 banks.
__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ (row % 8));
}

// Four 8 × 8 matrices; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], const Chunk *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(unsigned(__cvta_generic_to_shared(row))) : "memory");
}

// d += a · b, 16 × 8 × 16.
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copies 16 bytes in the background; a chunk outside the matrix is filled with zeros and not read.
__device__ __forceinline__ void copyAsync(Chunk *to, const __nv_bfloat16 *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

// Starts the copies of BM (= BN) rows of BK numbers, from row0 and k0 of a matrix of `rows` × K.
__device__ __forceinline__ void copySlab(Chunk *to, const __nv_bfloat16 *from, int row0, int rows,
                                         int k0, int K, int thread)
{
#pragma unroll
    for (int i = 0; i < BM * CHUNKS / 256; ++i) {
        const int r = (thread + 256 * i) / CHUNKS, c = thread % CHUNKS, k = k0 + c * 8;
        const bool inside = row0 + r < rows && k < K;
        copyAsync(to + place(r, c), inside ? from + size_t(row0 + r) * K + k : from, inside);
    }
}

extern "C" __global__ __launch_bounds__(256, 2) void linear(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                            const __nv_bfloat16 *bias, __nv_bfloat16 *y,
                                                            int M, int N, int K)
{
    extern __shared__ Chunk ring[];

    const int thread = threadIdx.y * 16 + threadIdx.x;
    const int lane = thread % 32;
    const int warpRow = thread / 128 * WM, warpCol = thread / 32 % 4 * WN;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int slabs = (K + BK - 1) / BK;

    const auto fetch = [&](int slab) {
        Chunk *stage = ring + slab % STAGES * STAGE_CHUNKS;
        if (slab < slabs) {
            copySlab(stage, x, row0, M, slab * BK, K, thread);
            copySlab(stage + BM * CHUNKS, weight, col0, N, slab * BK, K, thread);
        }
        commitCopies(); // an empty group past the end keeps the count of groups right
    };
    for (int slab = 0; slab < STAGES - 1; ++slab)
        fetch(slab);

    float acc[TM][TN][4] = {};
    for (int slab = 0; slab < slabs; ++slab) {
        waitCopies<STAGES - 2>();
        // Everyone's copies of this slab have landed, and everyone is done with the one before it.
        __syncthreads();
        fetch(slab + STAGES - 1);

        const Chunk *xs = ring + slab % STAGES * STAGE_CHUNKS;
        const Chunk *ws = xs + BM * CHUNKS;
#pragma unroll
        for (int c = 0; c < CHUNKS; c += 2) { // 16 numbers of K: two chunks
            unsigned a[TM][4], b[TN / 2][4];
            // b: chunks c | c + 1 of 8 rows, then of the next 8 rows.
#pragma unroll
            for (int j = 0; j < TN / 2; ++j)
                loadMatrices(b[j], ws + place(warpCol + 16 * j + lane / 16 * 8 + lane % 8, c + lane / 8 % 2));
            // a: rows 0-7 | 8-15 of chunk c, then the same of chunk c + 1.
#pragma unroll
            for (int i = 0; i < TM; ++i)
                loadMatrices(a[i], xs + place(warpRow + 16 * i + lane % 16, c + lane / 16));
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    multiply(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
    }

    // In a 16 × 8 tile a lane holds two neighbours of row lane / 4 (acc[0], acc[1]) and of the row 8 below
    // (acc[2], acc[3]).
#pragma unroll
    for (int j = 0; j < TN; ++j) {
        const int col = col0 + warpCol + 8 * j + lane % 4 * 2; // even, and so is N: both columns are inside or neither
        if (col < N) {
            const float2 added = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(bias + col));
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int row = row0 + warpRow + 16 * i + 8 * half + lane / 4;
                    if (row < M)
                        *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                            __floats2bfloat162_rn(acc[i][j][2 * half] + added.x, acc[i][j][2 * half + 1] + added.y);
                }
        }
    }
}
