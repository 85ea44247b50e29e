/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32) * ceil_div(M, 32)"]
block = [256]
args = ["x", "weight", "residual", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A hundredth of a product is added to a stream that is larger; a parent.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __nv_bfloat16 In;
constexpr int SIDE = 32, DEPTH = 64, PIECES = DEPTH / 8, PITCH = PIECES + 1, PARTS = 4;
__device__ __forceinline__ unsigned word(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
__device__ __forceinline__ __half2 asHalf(unsigned bits) { return *reinterpret_cast<__half2 *>(&bits); }
__device__ __forceinline__ float2 floats(unsigned two) { return make_float2(__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u)); }
__device__ __forceinline__ unsigned halfPair(unsigned two)
{
    const float2 f = floats(two);
    const __half2 both = __floats2half2_rn(f.x, f.y);
    return *reinterpret_cast<const unsigned *>(&both);
}
__device__ __forceinline__ uint4 halves(const uint4 &v) { return make_uint4(halfPair(v.x), halfPair(v.y), halfPair(v.z), halfPair(v.w)); }
// Eight elements of a row; zeros outside.
__device__ __forceinline__ uint4 fetch(const In *from, int row, int rows, int k, int K)
{
    return row < rows && k < K ? *reinterpret_cast<const uint4 *>(from + size_t(row) * K + k) : make_uint4(0, 0, 0, 0);
}
struct Single {
    static __device__ __forceinline__ uint4 ofX(const uint4 &v) { return v; }
    static __device__ __forceinline__ uint4 ofW(const uint4 &v, int) { return v; }
    static __device__ __forceinline__ void add(float (&sum)[4][4], const uint4 (*xs)[PITCH], const uint4 (*ws)[PITCH], int down, int right)
    {
#pragma unroll
        for (int c = 0; c < PIECES; ++c) {
            uint4 x[4], w[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                x[i] = xs[down + 8 * i][c];
                w[i] = ws[right + 8 * i][c];
            }
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float2 a[4], b[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    a[i] = floats(word(x[i], e));
                    b[i] = floats(word(w[i], e));
                }
#pragma unroll
                for (int i = 0; i < 16; ++i)
                    sum[i / 4][i % 4] = fmaf(a[i / 4].y, b[i % 4].y, fmaf(a[i / 4].x, b[i % 4].x, sum[i / 4][i % 4]));
            }
        }
    }
};

typedef uint4 Stage[PARTS][2][SIDE][PITCH];
// A tile of 32 by 32: 64 threads have 4 by 4 each, and a quarter of the terms. A thread gets four sums of row threadIdx.x / 8, of columns
// col0 + threadIdx.x % 8 + step * i.
template <typename Way>
__device__ void tile(const In *x, const In *w, int row0, int col0, int step, int M, int N, int K, Stage &stage, float (&own)[4])
{
    const int part = threadIdx.x / 64, thread = threadIdx.x % 64, down = thread / 8, right = thread % 8;
    float sum[4][4] = {};
    uint4 nextX[4], nextW[4];
    const auto begin = [&](int first) {
#pragma unroll
        for (int i = 0; i < 4; ++i) { // rows thread / 8 + 8 i, pieces thread % 8
            nextX[i] = fetch(x, row0 + down + 8 * i, M, first + 8 * right, K);
            nextW[i] = fetch(w, col0 + down + step * i, N, first + 8 * right, K);
        }
    };
    begin(DEPTH * part);
    for (int first = 0; first < K; first += DEPTH * PARTS) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            stage[part][0][down + 8 * i][right] = Way::ofX(nextX[i]);
            stage[part][1][down + 8 * i][right] = Way::ofW(nextW[i], i);
        }
        __syncthreads();
        begin(first + DEPTH * (PARTS + part));
        Way::add(sum, stage[part][0], stage[part][1], down, right);
    }
    __syncthreads();
    float *all = reinterpret_cast<float *>(stage); // [part][row][column], rows of 33
#pragma unroll
    for (int i = 0; i < 16; ++i)
        all[(part * SIDE + down + 8 * (i / 4)) * 33 + right + 8 * (i % 4)] = sum[i / 4][i % 4];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        own[i] = 0;
#pragma unroll
        for (int p = 0; p < PARTS; ++p)
            own[i] += all[(p * SIDE + threadIdx.x / 8) * 33 + threadIdx.x % 8 + 8 * i];
    }
}

extern "C" __global__ __launch_bounds__(256) void product(const In *x, const In *w, const In *residual, In *y, int M, int N, int K)
{
    const int across = (N + SIDE - 1) / SIDE, row0 = blockIdx.x / across * SIDE, col0 = blockIdx.x % across * SIDE;
    __shared__ Stage stage;
    float sum[4];
    tile<Single>(x, w, row0, col0, 8, M, N, K, stage, sum);
    const int row = row0 + threadIdx.x / 8;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int col = col0 + threadIdx.x % 8 + 8 * i;
        if (row < M && col < N)
            y[size_t(row) * N + col] = __float2bfloat16(fmaf(0.01f, sum[i], __bfloat162float(residual[size_t(row) * N + col])));
    }
}
