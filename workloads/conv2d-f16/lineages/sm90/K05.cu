/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3, 4]

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * H * W, 128)", "ceil_div(F, 128)"]
block = ["256"]
shared = "STAGES * 16384 + (128 + 2 * W + 3) * 128 + 1024"
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// Implicit GEMM on the tensor cores: 128 pixels times 128 filters a block. The nine taps of 128 pixels in
// a row read the same 128 + 2 W + 2 pixels, each tap a window that begins tap / 3 · W + tap % 3 pixels
// later: these are copied once for each 64 channels, and only weights go through the ring. A window row
// that lies outside of the image is read from a row of zeros instead, which ldmatrix takes from any
// address. Needs C % 8 == 0, F % 8 == 0.

#include <cuda_fp16.h>

constexpr int STAGE_BYTES = 64 * 128 * 2; // one tap: 64 channels of 128 filters

// Where a 16-byte chunk of a row of 128 bytes is kept.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk ^ (row % 8)) * 16;
}

// Starts the copy of 16 bytes, or of none of them: then the place is filled with zeros.
__device__ __forceinline__ void copyChunk(unsigned to, const __half *from, bool some)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(some ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all of this thread's groups of copies but the last PENDING have landed.
template <int PENDING> __device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
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
    extern __shared__ unsigned char dynamicShared[];
    // A stage: twice 64 rows of 64 filters. After the ring: the pixels and the row of zeros.
    const unsigned ring = (unsigned(__cvta_generic_to_shared(dynamicShared)) + 1023) & ~1023u;
    const unsigned xs = ring + STAGES * STAGE_BYTES;

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int pixels = N * H * W;
    const int p0 = blockIdx.x * 128, f0 = blockIdx.y * 128;
    const int rows = 128 + 2 * W + 2;
    const int chunks = (C + 63) / 64;

    const auto fetchPixels = [&](int c0) {
        const int channel = c0 + thread % 8 * 8;
        for (int row = thread / 8; row < rows; row += 32) {
            const long long pixel = (long long)p0 - W - 1 + row;
            const bool some = pixel >= 0 && pixel < pixels && channel < C;
            copyChunk(xs + place(row, thread % 8), some ? data + pixel * C + channel : data, some);
        }
    };
    const auto fetchWeights = [&](int slab) {
        const int c0 = slab / 9 * 64, tap = slab % 9;
        const int row = thread / 16, chunk = thread % 16;
        const int f = f0 + chunk * 8;
        const unsigned ws = ring + slab % STAGES * STAGE_BYTES + chunk / 8 * 8192;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int c = c0 + row + 16 * i;
            const bool some = c < C && f < F;
            copyChunk(ws + place(row + 16 * i, chunk % 8),
                      some ? weight + (long long)(tap * C + c) * F + f : weight, some);
        }
    };

    if (thread < 8)
        copyChunk(xs + place(rows, thread), data, false); // the row of zeros
    const int slabs = 9 * chunks;
    fetchPixels(0); // part of the first group
    for (int slab = 0; slab < STAGES - 1; ++slab) {
        if (slab < slabs)
            fetchWeights(slab);
        commitCopies();
    }

    const int m0 = warp % 4 * 32, n0 = warp / 4 * 64;

    // For the two rows that this lane names to ldmatrix: a bit for each tap that lies in the image.
    unsigned inside[2] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int pixel = p0 + m0 + 16 * i + lane % 16;
        const int w = pixel % W, h = pixel / W % H;
        for (int tap = 0; tap < 9; ++tap) {
            const int y = h + tap / 3 - 1, x = w + tap % 3 - 1;
            if (pixel < pixels && y >= 0 && y < H && x >= 0 && x < W)
                inside[i] |= 1u << tap;
        }
    }

    float sum[2][8][4] = {};
    for (int slab = 0; slab < slabs; ++slab) {
        const int tap = slab % 9;
        if (slab > 0 && tap == 0) { // the next 64 channels
            __syncthreads();
            fetchPixels(slab / 9 * 64);
            commitCopies();
            waitCopies<0>();
        } else {
            waitCopies<STAGES - 2>();
        }
        __syncthreads(); // this slab is there, and everyone has left the slab before
        if (slab + STAGES - 1 < slabs)
            fetchWeights(slab + STAGES - 1);
        commitCopies();

        int from[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
            from[i] = inside[i] >> tap & 1 ? m0 + 16 * i + lane % 16 + tap / 3 * W + tap % 3 : rows;
        const unsigned ws = ring + slab % STAGES * STAGE_BYTES + n0 / 64 * 8192;
#pragma unroll
        for (int k = 0; k < 64; k += 16) {
            unsigned av[2][4], bv[4][4];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                loadMatrices(av[i], xs + place(from[i], k / 8 + lane / 16));
#pragma unroll
            for (int j = 0; j < 4; ++j)
                loadTransposed(bv[j], ws + place(k + lane % 16, 2 * j + lane / 16));
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    multiply(sum[i][j], av[i], bv[j / 2][j % 2 * 2], bv[j / 2][j % 2 * 2 + 1]);
        }
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
