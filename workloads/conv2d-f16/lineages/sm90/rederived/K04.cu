/*klineage
surface = "cuda"

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * H * W, 128)", "ceil_div(F, 128)"]
block = ["256"]
shared = "3 * 2 * 128 * 128"
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// Implicit GEMM on the tensor cores: a block has 128 pixels times 128 filters, a slab is one tap's 64
// channels of both, as f16 rows of 128 bytes whose 16-byte chunks are swizzled by the row. cp.async fills
// a ring of three slabs, two ahead of the products; copies of no bytes write the zeros of the borders.
// ldmatrix brings fragments, mma.sync multiplies them; eight warps of 32 pixels times 64 filters. Needs
// C % 8 == 0 and F % 8 == 0.

#include <cuda_fp16.h>

constexpr int SLAB_BYTES = 128 * 128;        // of either operand
constexpr int STAGES = 3;                    // of the ring; the plan's "shared" follows it
constexpr int STAGE_BYTES = 2 * SLAB_BYTES;  // 128 rows of 64 channels, then twice 64 rows of 64 filters

// Where a 16-byte chunk of a row of 128 bytes is kept.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk ^ (row % 8)) * 16;
}

// Begins a copy of 16 bytes to shared memory; of none, and 16 zeros, if nothing is there.
__device__ __forceinline__ void copyChunk(unsigned to, const __half *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until at most `left` of this thread's groups of copies are under way.
template <int left>
__device__ __forceinline__ void awaitCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(left) : "memory");
}

__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

__device__ __forceinline__ void loadTransposed(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

// d += a · b: 16 pixels × 8 filters, over 16 channels.
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ __launch_bounds__(256, 2) void conv2d(const __half *data, const __half *weight,
                                                            __half *output, int N, int H, int W, int C, int F)
{
    extern __shared__ __align__(1024) unsigned char slabs[];
    const unsigned ring = unsigned(__cvta_generic_to_shared(slabs));
    const unsigned lastStage = ring + (STAGES - 1) * STAGE_BYTES;

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int pixels = N * H * W;
    const int p0 = blockIdx.x * 128, f0 = blockIdx.y * 128;

    // What this thread stages: a chunk of 8 channels of the pixels row, row + 32, …, and one of 8 filters
    // of the channels weightRow, weightRow + 16, …
    const int row = thread / 8, chunk = thread % 8;
    const int weightRow = thread / 16, weightChunk = thread % 16;
    // For each of these pixels a bit for each tap that lies in the image.
    unsigned inside[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int pixel = p0 + row + 32 * i;
        const int w = pixel % W, h = pixel / W % H;
        for (int tap = 0; tap < 9; ++tap) {
            const int y = h + tap / 3 - 1, x = w + tap % 3 - 1;
            if (pixel < pixels && y >= 0 && y < H && x >= 0 && x < W)
                inside[i] |= 1u << tap;
        }
    }

    // Begins the copies of the next slab (tap by tap, 64 channels at a time) to a stage of the ring.
    int tap = 0, c0 = 0;
    const auto fetch = [&](unsigned stage) {
        const long long pixel = p0 + row + (tap / 3 - 1) * W + tap % 3 - 1;
        const __half *const x = data + pixel * C + c0 + chunk * 8;
        const __half *const k = weight + (long long)(tap * C + c0 + weightRow) * F + f0 + weightChunk * 8;
        const unsigned xs = stage + place(row, chunk);
        const unsigned ws = stage + SLAB_BYTES + weightChunk / 8 * 8192 + place(weightRow, weightChunk % 8);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const bool haveX = (inside[i] >> tap & 1) && c0 + chunk * 8 < C;
            const bool haveK = c0 + weightRow + 16 * i < C && f0 + weightChunk * 8 < F;
            copyChunk(xs + 32 * i * 128, haveX ? x + 32 * i * C : data, haveX);
            copyChunk(ws + 16 * i * 128, haveK ? k + 16 * i * F : weight, haveK);
        }
        c0 += 64;
        if (c0 >= C) {
            c0 = 0;
            ++tap;
        }
    };

    const int slabCount = 9 * ((C + 63) / 64); // at least 9, more than the ring has stages
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) {
        fetch(ring + i * STAGE_BYTES);
        commitCopies();
    }

    const int m0 = warp % 4 * 32, n0 = warp / 4 * 64;
    float sum[2][8][4] = {};
    unsigned xs = ring;      // the stage to multiply
    unsigned to = lastStage; // the stage to fill: the one multiplied last
    for (int slab = 0; slab < slabCount; ++slab) {
        awaitCopies<STAGES - 2>(); // a group a slab, empty ones at the end
        __syncthreads();           // everyone's copies of this slab are here, and everyone has left the slab before
        const unsigned ws = xs + SLAB_BYTES;
#pragma unroll
        for (int k = 0; k < 64; k += 16) {
            unsigned av[2][4], bv[4][4];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                loadMatrices(av[i], xs + place(m0 + 16 * i + lane % 16, k / 8 + lane / 16));
#pragma unroll
            for (int j = 0; j < 4; ++j)
                loadTransposed(bv[j], ws + n0 / 64 * 8192 + place(k + lane % 16, 2 * j + lane / 16));
            if (k == 0) {
                if (slab + STAGES - 1 < slabCount)
                    fetch(to);
                commitCopies();
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    multiply(sum[i][j], av[i], bv[j / 2][j % 2 * 2], bv[j / 2][j % 2 * 2 + 1]);
        }
        to = xs;
        xs = xs == lastStage ? ring : xs + STAGE_BYTES;
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int pixel = p0 + m0 + 8 * i + lane / 4;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int f = f0 + n0 + 8 * j + lane % 4 * 2;
            if (pixel < pixels && f < F)
                *reinterpret_cast<__half2 *>(output + (long long)pixel * F + f) =
                    __floats2half2_rn(sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]);
        }
    }
}
