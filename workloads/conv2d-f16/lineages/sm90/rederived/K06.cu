/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 4
values = [3, 4]

[[launch]]
kernel = "conv2d"
grid = ["ceil_div(N * (H + 1) * (W + 1), 128)", "ceil_div(F, 128)"]
block = ["256"]
shared = "STAGES * 16384 + (128 + 2 * W + 4) * 128 + 1024"
args = ["data_nhwc", "weight_hwcf", "output", "int N", "int H", "int W", "int C", "int F"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output[n,h,w,f] = Σ data[n, h + r − 1, w + s − 1, c] · weight[(3r + s)C + c, f], sums in fp32.
//
// Implicit GEMM with wgmma, turned over: 128 filters (rows) times 128 positions (columns) a block. The
// positions are those of lines padded by one zero each and images padded by one line of zeros each: a tap
// of 128 positions in a row is then a window of the same matrix that begins tap / 3 · (W + 1) + tap % 3
// rows later, zeros included, and differs in nothing but the start address of its descriptor. The
// 128 + 2 (W + 1) + 2 positions are copied once for each 64 channels, and only weights go through the
// ring. The sums of padding are thrown away. Needs C % 8 == 0, F % 8 == 0.

#include <cuda_fp16.h>

constexpr int STAGE_BYTES = 64 * 128 * 2; // one tap: 64 channels of 128 filters

// Where a 16-byte chunk of a row of 128 bytes is kept: the swizzle of 128 bytes that wgmma knows.
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

// Lets wgmma see what this thread's copies have written, after the next barrier.
__device__ __forceinline__ void publishCopies()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// A wgmma descriptor: rows of 128 bytes, swizzled, eight of them every 1024 bytes.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (1ull << 62) | (64ull << 32) | (64ull << 16) | (unsigned long long)((address & 0x3ffff) >> 4);
}

__device__ __forceinline__ void beginProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all of this warpgroup's groups of products but the last PENDING are done.
template <int PENDING> __device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}

// Keeps the compiler from moving uses of the sums over this place.
__device__ __forceinline__ void holdSums(float (&d)[64])
{
#pragma unroll
    for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(d[i]) :: "memory");
}

// d += a · b: 64 filters (a row for each channel) × 128 positions (a row for each position), over 16 channels.
__device__ __forceinline__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, p, 1, 1, 1, 0;\n"
                 "}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
                   "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
                   "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
                   "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
                   "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                   "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
                   "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
                   "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                   "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]),
                   "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
                   "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                   "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "l"(a), "l"(b), "r"(1));
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

// Stores four matrices of 8 × 8, each column of them as a row of 16 bytes.
__device__ __forceinline__ void storeTransposed(unsigned row, unsigned a, unsigned b, unsigned c, unsigned d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(row), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

__device__ __forceinline__ uint4 loadChunk(unsigned from)
{
    uint4 to;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w) : "r"(from) : "memory");
    return to;
}

// A position of the padded lines: line H of an image and column W of a line are padding.
struct Position
{
    int n, h, w;
};

__device__ __forceinline__ Position locate(unsigned position, int H, int W)
{
    const unsigned line = position / unsigned(W + 1);
    Position at;
    at.w = int(position - line * unsigned(W + 1));
    at.n = int(line / unsigned(H + 1));
    at.h = int(line - unsigned(at.n) * unsigned(H + 1));
    return at;
}

__device__ __forceinline__ void advance(Position &at, const Position &step, int H, int W)
{
    at.w += step.w;
    at.h += step.h;
    at.n += step.n;
    if (at.w > W) {
        at.w -= W + 1;
        ++at.h;
    }
    if (at.h > H) {
        at.h -= H + 1;
        ++at.n;
    }
}

extern "C" __global__ __launch_bounds__(256, 2) void conv2d(const __half *data, const __half *weight,
                                                            __half *output, int N, int H, int W, int C, int F)
{
    extern __shared__ unsigned char dynamicShared[];
    // A stage: twice 64 rows of 64 filters. After the ring: the positions.
    const unsigned ring = (unsigned(__cvta_generic_to_shared(dynamicShared)) + 1023) & ~1023u;
    const unsigned xs = ring + STAGES * STAGE_BYTES;

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int group = __shfl_sync(0xffffffffu, thread / 128, 0); // the warpgroup: 64 filters
    const int p0 = blockIdx.x * 128, f0 = blockIdx.y * 128;
    const int rows = 128 + 2 * (W + 1) + 2;
    const int chunks = (C + 63) / 64;
    const int slabs = 9 * chunks;

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
    fetchWeights(0); // part of the first group

    // 32 positions on, and the first one that this thread copies: W + 2 before the block's, found one
    // image later so that it isn't negative.
    const Position step = locate(32, H, W);
    Position first = locate(unsigned(p0 + thread / 8 + H * (W + 1) - 1), H, W);
    --first.n;

    const auto fetchPixels = [&](int c0) {
        const int channel = c0 + thread % 8 * 8;
        Position at = first;
        for (int row = thread / 8; row < rows; row += 32) {
            const bool some = at.n >= 0 && at.n < N && at.h < H && at.w < W && channel < C;
            const int pixel = (at.n * H + at.h) * W + at.w;
            copyChunk(xs + place(row, thread % 8), some ? data + (long long)pixel * C + channel : data, some);
            advance(at, step, H, W);
        }
    };
    fetchPixels(0);
    commitCopies();
#pragma unroll
    for (int slab = 1; slab < STAGES - 2; ++slab) {
        fetchWeights(slab);
        commitCopies();
    }

    Position to = locate(unsigned(p0 + thread / 8), H, W); // the first position that this thread will store

    float sum[64] = {};
    holdSums(sum);
#pragma unroll 1
    for (int part = 0; part < chunks; ++part) {
        if (part > 0) { // the next 64 channels
            __syncthreads();
            fetchPixels(part * 64);
            commitCopies();
            waitCopies<0>();
        }
#pragma unroll 1
        for (int tap = 0; tap < 9; ++tap) {
            const int slab = 9 * part + tap;
            waitCopies<STAGES - 3>();
            publishCopies();
            __syncthreads(); // this slab is there, and everyone is done with the slab before the last

            const unsigned long long a = describe(ring + slab % STAGES * STAGE_BYTES + group * 8192);
            const unsigned long long b = describe(xs + (tap / 3 * (W + 1) + tap % 3) * 128);
            beginProducts();
#pragma unroll
            for (int k = 0; k < 4; ++k) // 16 channels: 16 rows of weights, 32 bytes of each position
                multiply(sum, a + k * 128, b + k * 2);
            commitProducts();

            if (slab + STAGES - 2 < slabs)
                fetchWeights(slab + STAGES - 2);
            commitCopies();
            waitProducts<1>();
        }
        waitProducts<0>();
    }
    holdSums(sum);

    // The ring takes the sums, turned back: for each 64 filters 128 rows, one a position.
    __syncthreads();
    {
        const unsigned turned = ring + group * 16384;
        const int chunk = warp % 4 * 2 + lane / 8 % 2;
#pragma unroll
        for (int j = 0; j < 16; j += 2) {
            const int row = 8 * j + lane / 16 * 8 + lane % 8;
            storeTransposed(turned + place(row, chunk),
                            pack(sum[4 * j + 0], sum[4 * j + 1]), pack(sum[4 * j + 2], sum[4 * j + 3]),
                            pack(sum[4 * j + 4], sum[4 * j + 5]), pack(sum[4 * j + 6], sum[4 * j + 7]));
        }
    }
    __syncthreads();

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = thread / 8 + 32 * i;
        const bool real = to.n < N && to.h < H && to.w < W;
        const int pixel = (to.n * H + to.h) * W + to.w;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int f = f0 + 64 * half + thread % 8 * 8;
            const uint4 sums = loadChunk(ring + half * 16384 + place(row, thread % 8));
            if (real && f < F)
                *reinterpret_cast<uint4 *>(output + (long long)pixel * F + f) = sums;
        }
        advance(to, step, H, W);
    }
}
