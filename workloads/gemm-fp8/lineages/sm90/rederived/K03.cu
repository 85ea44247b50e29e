/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3, 4]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["256"]
shared = "STAGES * 2 * 128 * 128"
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, e4m3 in, bf16 out, fp32 sums.
//
// The products move to the tensor cores: 2 × 4 warps, each with a 64 × 32 patch of y made of 16 × 8
// mma.sync tiles of 32 numbers of K. Nothing is widened any more: the slab keeps its bytes, in chunks of 16,
// swizzled against bank conflicts, and ldmatrix, which knows pairs of bytes, hands out four bytes a lane
// just as the tile wants them.
// The slabs lie in a ring of STAGES, which cp.async fills STAGES - 1 slabs ahead of the products: no
// register holds a number on its way to shared memory, and no warp waits for one it has just asked for.
// Needs K % 16 == 0 for whole chunks, and N % 8 == 0 for stores of two numbers.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128, BK = 128;
constexpr int WM = 64, WN = 32;
constexpr int TM = WM / 16, TN = WN / 8;
constexpr int CHUNKS = BK / 16;
constexpr int SLAB = (BM + BN) * CHUNKS; // chunks of one place of the ring: x's, then weight's

struct alignas(16) Chunk {
    unsigned words[4]; // four numbers each
};

// Row r keeps chunk c at place c ^ (r % 8): eight neighbouring rows cover all 32 banks.
__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ (row % 8));
}

// Starts the copy of a chunk; zeros, and nothing read, if it is not inside.
__device__ __forceinline__ void copyChunk(Chunk *to, const unsigned char *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(unsigned(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)),
                    "r"(inside ? 16 : 0) : "memory");
}

// Closes a group of copies.
__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most `Pending` of this thread's latest groups are under way.
template <int Pending>
__device__ __forceinline__ void waitForCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(Pending) : "memory");
}

// Starts to copy BM (= BN) rows of BK numbers, from row0 and k0 of a matrix of `rows` × K; zeros outside of it.
__device__ __forceinline__ void copySlab(Chunk *to, const unsigned char *from, int row0, int rows,
                                         int k0, int K, int thread)
{
#pragma unroll
    for (int i = 0; i < BM * CHUNKS / 256; ++i) {
        const int r = (thread + 256 * i) / CHUNKS, c = thread % CHUNKS, k = k0 + c * 16;
        const bool inside = row0 + r < rows && k < K;
        copyChunk(to + place(r, c), inside ? from + size_t(row0 + r) * K + k : from, inside);
    }
}

// Four matrices of 8 rows and 16 bytes; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], const Chunk *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(unsigned(__cvta_generic_to_shared(row))) : "memory");
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ __launch_bounds__(256, 2) void gemm(const unsigned char *x, const unsigned char *weight,
                                                          __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ __align__(128) Chunk ring[]; // STAGES * SLAB

    const int thread = threadIdx.x, lane = thread % 32;
    const int warpRow = thread / 128 * WM, warpCol = thread / 32 % 4 * WN;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int slabs = (K + BK - 1) / BK;

    // A group a slab, empty ones past the end, so that the count of groups tells which slab is there.
#pragma unroll
    for (int slab = 0; slab < STAGES - 1; ++slab) {
        if (slab < slabs) {
            Chunk *to = ring + slab * SLAB;
            copySlab(to, x, row0, M, slab * BK, K, thread);
            copySlab(to + BM * CHUNKS, weight, col0, N, slab * BK, K, thread);
        }
        commitCopies();
    }

    float acc[TM][TN][4] = {};
    int reading = 0, filling = STAGES - 1; // places of the ring
#pragma unroll 1
    for (int slab = 0; slab < slabs; ++slab) {
        waitForCopies<STAGES - 2>();
        __syncthreads(); // the slab is there for everyone, and everyone is done with the one before

        // Into the place of the slab before.
        const int ahead = slab + STAGES - 1;
        if (ahead < slabs) {
            Chunk *to = ring + filling * SLAB;
            copySlab(to, x, row0, M, ahead * BK, K, thread);
            copySlab(to + BM * CHUNKS, weight, col0, N, ahead * BK, K, thread);
        }
        commitCopies();

        const Chunk *xs = ring + reading * SLAB, *ws = xs + BM * CHUNKS;
#pragma unroll 1
        for (int c = 0; c < CHUNKS; c += 2) {
            unsigned a[TM][4];
            for (int i = 0; i < TM; ++i)
                loadMatrices(a[i], xs + place(warpRow + 16 * i + lane % 16, c + lane / 16));
            for (int j = 0; j < TN; j += 2) {
                unsigned b[4];
                loadMatrices(b, ws + place(warpCol + 8 * j + lane / 16 * 8 + lane % 8, c + lane / 8 % 2));
                for (int i = 0; i < TM; ++i) {
                    multiply(acc[i][j], a[i], b[0], b[1]);
                    multiply(acc[i][j + 1], a[i], b[2], b[3]);
                }
            }
        }

        filling = reading;
        reading = reading + 1 == STAGES ? 0 : reading + 1;
    }

    // In a 16 × 8 tile a lane holds two neighbouring numbers of row lane / 4, and two of the row 8 below.
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j)
            for (int half = 0; half < 2; ++half) {
                const int row = row0 + warpRow + 16 * i + 8 * half + lane / 4;
                const int col = col0 + warpCol + 8 * j + lane % 4 * 2;
                if (row < M && col < N)
                    *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                        __floats2bfloat162_rn(acc[i][j][2 * half], acc[i][j][2 * half + 1]);
            }
}
