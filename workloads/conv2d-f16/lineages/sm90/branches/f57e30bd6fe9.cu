/*klineage
surface = "cuda"

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * H * W, 128)", "ceil_div(F, 128)"]
block = ["256"]
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// Implicit GEMM: a block has 128 pixels (of all images in a row) times 128 filters. For each tap of the
// window and each 64 channels it stages both operands in shared memory, as swizzled rows of f16; a warp
// multiplies 64 pixels by 32 filters on the tensor cores. Needs C % 8 == 0 and F % 8 == 0.

#include <cuda_fp16.h>

constexpr int BK = 64;

__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

__device__ __forceinline__ void loadTransposed(unsigned (&to)[4], unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack(float x, float y)
{
    const __half2 both = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned *>(&both);
}

extern "C" __global__ __launch_bounds__(256, 2) void conv2d(const __half *data, const __half *weight,
                                                            __half *output, int N, int H, int W, int C, int F)
{
    // Chunks of 8 halves; chunk c of a row lies at c ^ row % 8.
    __shared__ __align__(128) uint4 xs[128][BK / 8];  // a row for each pixel
    __shared__ __align__(128) uint4 ws[BK][128 / 8];  // a row for each channel

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int pixels = N * H * W;
    const int p0 = blockIdx.x * 128, f0 = blockIdx.y * 128;

    // What this thread stages: 8 channels of the pixels row + 32 · i, 8 filters of the channels weightRow + 16 · i.
    const int row = thread / 8, chunk = thread % 8, channel = chunk * 8;
    const int weightRow = thread / 16, weightChunk = thread % 16, filter = weightChunk * 8;
    uint4 *const xsTo = &xs[row][chunk ^ row % 8];
    uint4 *const wsTo = &ws[weightRow][weightChunk ^ weightRow % 8];

    // Which taps of these pixels are inside of the image, a bit for each: a lane finds it for one of the
    // warp's 16 pixels.
    unsigned inside[4];
    {
        const int pixel = p0 + warp * 4 + lane % 4 + lane / 4 % 4 * 32;
        const int w = pixel % W, h = pixel / W % H;
        const unsigned columns = 2u | (w > 0 ? 1u : 0u) | (w + 1 < W ? 4u : 0u);
        unsigned taps = columns << 3 | (h > 0 ? columns : 0u) | (h + 1 < H ? columns << 6 : 0u);
        if (pixel >= pixels)
            taps = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            inside[i] = __shfl_sync(0xffffffffu, taps, lane / 8 + 4 * i);
    }

    // What its warp computes: pixels y … y + 63, filters x … x + 31.
    const int y = warp / 4 * 64, x = warp % 4 * 32;
    const unsigned xsFrom = static_cast<unsigned>(__cvta_generic_to_shared(&xs[0][0]))
                            + (y + lane % 16) * (BK * 2) + ((lane / 16) ^ (lane % 8)) * 16;
    const unsigned wsFrom = static_cast<unsigned>(__cvta_generic_to_shared(&ws[0][0]))
                            + lane % 16 * 256 + ((x / 8 + lane / 16) ^ (lane % 8)) * 16;

    float sum[4][4][4] = {};
    for (int tap = 0; tap < 9; ++tap) {
        const int r = tap / 3 - 1, s = tap % 3 - 1;
        const __half *const from = data + (long long)(p0 + row + r * W + s) * C + channel;
        for (int c0 = 0; c0 < C; c0 += BK) {
            const __half *const weights = weight + (long long)(tap * C + c0 + weightRow) * F + f0 + filter;
            uint4 a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                a[i] = make_uint4(0, 0, 0, 0);
                if ((inside[i] >> tap & 1u) && c0 + channel < C)
                    a[i] = *reinterpret_cast<const uint4 *>(from + c0 + i * 32 * C);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                b[i] = make_uint4(0, 0, 0, 0);
                if (c0 + weightRow + 16 * i < C && f0 + filter < F)
                    b[i] = *reinterpret_cast<const uint4 *>(weights + i * 16 * F);
            }
            __syncthreads(); // everyone has left the slab before
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                xsTo[i * 32 * (BK / 8)] = a[i];
                wsTo[i * 16 * (128 / 8)] = b[i];
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < BK / 16; ++k) {
                unsigned av[4][4], bv[2][4];
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    loadTransposed(bv[j], (wsFrom ^ (j * 32)) + k * (16 * 256));
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    loadMatrices(av[i], (xsFrom ^ (k * 32)) + i * (16 * BK * 2));
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        multiply(sum[i][j], av[i], bv[j / 2][j % 2 * 2], bv[j / 2][j % 2 * 2 + 1]);
            }
        }
    }

    // A lane has two filters of each 8; of two such 8s an even lane takes four of the first, an odd one
    // four of the second.
    const bool odd = lane % 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int to = p0 + y + i * 16 + half * 8 + lane / 4;
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const unsigned first = pack(sum[i][2 * j][2 * half], sum[i][2 * j][2 * half + 1]);
                const unsigned second = pack(sum[i][2 * j + 1][2 * half], sum[i][2 * j + 1][2 * half + 1]);
                const unsigned kept = odd ? second : first;
                const unsigned got = __shfl_xor_sync(0xffffffffu, odd ? first : second, 1);
                const int f = f0 + x + j * 16 + lane % 2 * 8 + lane % 4 / 2 * 4;
                if (to < pixels && f < F)
                    *reinterpret_cast<uint2 *>(output + (long long)to * F + f)
                        = odd ? make_uint2(got, kept) : make_uint2(kept, got);
            }
        }
    }
}
