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
shared = "STAGES * 16384 + 128 + min(2, ceil_div(C, 64)) * (2 * W + 130) * 128 + 1024"
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// Implicit GEMM on the tensor cores: 128 pixels times 128 filters a block, one tap's 64 channels a slab.
// The pixels with their halo, W + 1 pixels on either side, are copied once for each 64 channels; each of the
// nine taps reads its shifted window of them, and a row of zeros for what lies outside of the image.
// A ring of STAGES slabs of weights is filled by cp.async, STAGES - 1 slabs ahead of the products; chunks that
// lie outside of the data, of C or of F are copies of no bytes, which fill with zeros. Needs C % 8 == 0 and
// F % 8 == 0.

#include <cuda_fp16.h>

constexpr int SLAB_BYTES = 128 * 128; // of weights
constexpr int FIRST_ROWS = 160;       // rows of pixels copied with tap 0; taps 0, 1 and 2 read the first 130

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
    // A stage: twice 64 rows of 64 filters. After the stages a row of zeros, then one or two buffers of
    // haloRows rows of 64 channels; row i is the pixel p0 - W - 1 + i.
    const unsigned ring = (unsigned(__cvta_generic_to_shared(dynamicShared)) + 1023) & ~1023u;
    const unsigned zeros = ring + STAGES * SLAB_BYTES, halo = zeros + 128;
    const int haloRows = 128 + 2 * W + 2;

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int pixels = N * H * W;
    const int p0 = blockIdx.x * 128, f0 = blockIdx.y * 128;

    // What this thread stages: a chunk of 8 channels of the rows row, row + 32, … of pixels, and one of 8
    // filters of the channels weightRow, weightRow + 16, …
    const int row = thread / 8, chunk = thread % 8;
    const int weightRow = thread / 16, weightChunk = thread % 16;

    const int chunks = (C + 63) / 64;
    const auto fetch = [&](int slab, int stage) {
        const int group = slab / 9, tap = slab - group * 9, c0 = group * 64;
        // The pixels of these channels come with taps 0 and 1: what taps 0, 1 and 2 read, then the rest.
        if (tap < 2) {
            const unsigned xs = halo + (group & 1) * haloRows * 128 + place(row, chunk);
            const int end = tap == 0 && haloRows > FIRST_ROWS ? FIRST_ROWS : haloRows;
            const bool channels = c0 + chunk * 8 < C;
            for (int first = tap * FIRST_ROWS; first + row < end; first += 32) {
                const int pixel = p0 - W - 1 + first + row;
                const bool some = channels && pixel >= 0 && pixel < pixels;
                copyChunk(xs + first * 128, some ? data + (long long)pixel * C + c0 + chunk * 8 : data, some);
            }
        }
        const unsigned ws = ring + stage * SLAB_BYTES;
        const __half *const k = weight + (long long)(tap * C + c0 + weightRow) * F + f0 + weightChunk * 8;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const bool any = c0 + weightRow + 16 * i < C && f0 + weightChunk * 8 < F;
            copyChunk(ws + weightChunk / 8 * 8192 + place(weightRow + 16 * i, weightChunk % 8),
                      any ? k + 16 * i * F : weight, any);
        }
    };

    if (thread < 8)
        copyChunk(zeros + thread * 16, data, false);
    const int slabs = 9 * chunks;
#pragma unroll
    for (int slab = 0; slab < STAGES - 1; ++slab) {
        if (slab < slabs)
            fetch(slab, slab);
        commitCopies();
    }

    const int m0 = warp % 4 * 32, n0 = warp / 4 * 64;
    // For each of the two pixels whose rows this lane names to ldmatrix, a bit for each tap that lies in the image.
    unsigned inside[2] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int pixel = p0 + m0 + 16 * i + lane % 16;
        const int w = pixel % W, h = pixel / W % H;
#pragma unroll
        for (int tap = 0; tap < 9; ++tap) {
            const int y = h + tap / 3 - 1, x = w + tap % 3 - 1;
            if (pixel < pixels && y >= 0 && y < H && x >= 0 && x < W)
                inside[i] |= 1u << tap;
        }
    }

    float sum[2][8][4] = {};
    for (int slab = 0; slab < slabs; ++slab) {
        waitCopies<STAGES - 2>();
        __syncthreads(); // this slab is there, and everyone has left the slab before
        if (slab + STAGES - 1 < slabs)
            fetch(slab + STAGES - 1, (slab + STAGES - 1) % STAGES);
        commitCopies();

        const int group = slab / 9, tap = slab - group * 9;
        const unsigned xs = halo + (group & 1) * haloRows * 128, ws = ring + slab % STAGES * SLAB_BYTES;
        // Where this lane's rows of the tap's window begin. A row of zeros is read at the banks of the row it
        // stands for: eight rows of a matrix never meet in a bank.
        unsigned window[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const unsigned at = m0 + 16 * i + lane % 16 + tap / 3 * W + tap % 3;
            window[i] = ((inside[i] >> tap & 1) ? xs + at * 128 : zeros) + ((lane / 16) ^ (at & 7)) * 16;
        }
#pragma unroll
        for (int k = 0; k < 64; k += 16) {
            unsigned av[2][4], bv[4][4];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                loadMatrices(av[i], window[i] ^ (k * 2)); // chunk k / 8 + lane / 16 of the row
#pragma unroll
            for (int j = 0; j < 4; ++j)
                loadTransposed(bv[j], ws + n0 / 64 * 8192 + place(k + lane % 16, 2 * j + lane / 16));
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
