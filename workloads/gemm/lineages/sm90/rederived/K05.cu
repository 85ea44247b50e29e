/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3, 4]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["16", "16"]
shared = "STAGES * (128 + 128) * 64 * 2"
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// Shared memory becomes a ring of STAGES slabs (what one turn of the k-loop needs: BK numbers of all
// BM + BN rows) that cp.async fills STAGES - 1 slabs ahead. The copies bypass the registers and run while
// the block multiplies: a global load's latency is hidden behind whole slabs of arithmetic, and one
// barrier a slab is enough.
// The products run on the tensor cores: each of the 8 warps owns a tile of WM × WN sums, reads its
// fragments with ldmatrix and multiplies them with mma.sync (16 × 8 × 16, bf16 in, fp32 sums).
// Needs K % 8 == 0, so that a chunk is inside the matrix or outside, never half, and N % 8 == 0, so that
// a pair of columns is.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128, BK = 64;
constexpr int WARPS_M = 2, WARPS_N = 4;               // the warps of a block, as a grid
constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;   // the tile of a warp
constexpr int TM = WM / 16, TN = WN / 8;              // in products of 16 × 8
constexpr int CHUNKS = BK / 8;
constexpr int STAGE_CHUNKS = (BM + BN) * CHUNKS;

static_assert(WARPS_M * WARPS_N * 32 == 256, "one tile a warp");
static_assert(TN % 2 == 0, "one ldmatrix reads the weights of two products");

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

// Row r keeps chunk c at place c ^ (r % 8): eight neighbouring rows cover all 32 banks.
__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ (row % 8));
}

// Reads four matrices of 8 rows × 8 numbers; lanes 8m .. 8m + 7 point at the rows of matrix m. Of each, a
// lane gets two neighbouring numbers: row lane / 4, columns lane % 4 * 2 and the next.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], const Chunk *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(unsigned(__cvta_generic_to_shared(row))) : "memory");
}

// sum[16 × 8] += a[16 × 16] · b[8 × 16]ᵀ
__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
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

extern "C" __global__ __launch_bounds__(256, 1) void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                          __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ Chunk ring[];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int slabs = (K + BK - 1) / BK;

    const int lane = thread % 32, warp = thread / 32;
    const int warpRow = warp / WARPS_N * WM, warpCol = warp % WARPS_N * WN;
    // Where this lane points ldmatrix. x: rows 0-7 and 8-15 of the first chunk, then of the second.
    // weight: both chunks of rows 0-7, then of rows 8-15.
    const int aRow = warpRow + lane % 16, aChunk = lane / 16;
    const int bRow = warpCol + lane / 16 * 8 + lane % 8, bChunk = lane / 8 % 2;

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
        // One product is two chunks deep. Not unrolled: with the fragments of only one step alive, the
        // registers should leave room for a second block, whose warps cover the latency of ldmatrix.
#pragma unroll 1
        for (int c = 0; c < CHUNKS; c += 2) {
            // 16 rows further, a chunk has the same place in its row.
            const Chunk *as = xs + place(aRow, c + aChunk);
            const Chunk *bs = ws + place(bRow, c + bChunk);
            unsigned a[TM][4], b[TN / 2][4];
#pragma unroll
            for (int j = 0; j < TN / 2; ++j)
                loadMatrices(b[j], bs + 16 * j * CHUNKS);
#pragma unroll
            for (int i = 0; i < TM; ++i)
                loadMatrices(a[i], as + 16 * i * CHUNKS);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    multiply(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
    }

    // Of 16 × 8 sums a lane has two neighbours in row lane / 4 and two in the row 8 below.
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int row = row0 + warpRow + 16 * i + 8 * h + lane / 4;
                const int col = col0 + warpCol + 8 * j + lane % 4 * 2;
                if (row < M && col < N)
                    *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                        __floats2bfloat162_rn(acc[i][j][2 * h], acc[i][j][2 * h + 1]);
            }
}
