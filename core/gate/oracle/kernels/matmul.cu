/*klineage
surface = "cuda"

[[tunable]]
name = "WIDE"
default = 1
values = [0, 1]

[[tunable]]
name = "TYPE_A"
default = 0
values = [0, 1, 2, 3, 4]

[[tunable]]
name = "TYPE_B"
default = 0
values = [0, 1, 2, 3, 4]

[[tunable]]
name = "TYPE_BIAS"
default = 5
values = [0, 1, 2, 3, 4, 5]

[[tunable]]
name = "TRANSPOSE_B"
default = 0
values = [0, 1]

[[tunable]]
name = "GATHER"
default = 0
values = [0, 1]

[[launch]]
kernel = "multiply"
grid = ["ceil_div(M, 64)", "ceil_div(N, 64)", "GROUPS"]
block = ["256"]
args = ["a", "b", "bias", "offsets", "out", "long N", "long K", "long HEIGHT", "long WIDTH", "long CHANNELS", "long WINDOW"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// out[rows, n] = a[rows, k] · b in double, every product and sum, and bias[n] added to each row unless TYPE_BIAS is 5. The rows from
// offsets[g] to offsets[g + 1], at most M, are multiplied by the g-th matrix of b, which is [k, n], or [n, k] when TRANSPOSE_B. GATHER: a
// is not there but gathered from images [rows / (height·width), height, width, channels]: row (image, y, x) holds the window around
// that pixel, row by row, zeros outside of the image. A block makes 64 × 64 elements, a thread 4 × 4 of them, 16 apart.
#define TILE 64
#define SLICE 16
#define ROW (TILE + 1) // so that a column of the slice lies in as many banks

struct Images {
    i64 height, width, channels, window;
};

/// Element (row, k) of a.
__device__ inline double left(const void *a, i64 row, i64 k, i64 length, const Images &images)
{
#if GATHER
    const i64 pixel = row % (images.height * images.width);
    const i64 place = k / images.channels;
    const i64 y = pixel / images.width + place / images.window - images.window / 2;
    const i64 x = pixel % images.width + place % images.window - images.window / 2;
    if (y < 0 || x < 0 || y >= images.height || x >= images.width)
        return 0;
    const i64 first = row - pixel;
    return element<TYPE_A>(a, (first + y * images.width + x) * images.channels + k % images.channels);
#else
    return element<TYPE_A>(a, row * length + k);
#endif
}

extern "C" __global__ void __launch_bounds__(256)
    multiply(const void *a, const void *b, const void *bias, const i64 *offsets, Out *out, i64 n, i64 k,
             i64 height, i64 width, i64 channels, i64 window)
{
    __shared__ double lefts[SLICE * ROW];
    __shared__ double rights[SLICE * ROW];
    const Images images = {height, width, channels, window};
    const i64 m = offsets[blockIdx.z + 1]; // where the rows of this group end
    const i64 row0 = offsets[blockIdx.z] + static_cast<i64>(blockIdx.x) * TILE;
    const i64 matrix = static_cast<i64>(blockIdx.z) * k * n;
    if (row0 >= m)
        return;
    const i64 column0 = static_cast<i64>(blockIdx.y) * TILE;
    const int across = threadIdx.x % 16;
    const int down = threadIdx.x / 16;
    double sums[4][4] = {};
    for (i64 k0 = 0; k0 < k; k0 += SLICE) {
        for (int i = threadIdx.x; i < TILE * SLICE; i += 256) {
            const int r = i / SLICE, kk = i % SLICE;
            const bool inside = row0 + r < m && k0 + kk < k;
            lefts[kk * ROW + r] = inside ? left(a, row0 + r, k0 + kk, k, images) : 0.0;
        }
        for (int i = threadIdx.x; i < TILE * SLICE; i += 256) {
#if TRANSPOSE_B
            const int c = i / SLICE, kk = i % SLICE;
            const i64 at = matrix + (column0 + c) * k + k0 + kk;
#else
            const int c = i % TILE, kk = i / TILE;
            const i64 at = matrix + (k0 + kk) * n + column0 + c;
#endif
            const bool inside = column0 + c < n && k0 + kk < k;
            rights[kk * ROW + c] = inside ? element<TYPE_B>(b, at) : 0.0;
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < SLICE; ++kk) {
            double x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                x[i] = lefts[kk * ROW + down + 16 * i];
                y[i] = rights[kk * ROW + across + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    sums[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const i64 row = row0 + down + 16 * i, column = column0 + across + 16 * j;
            if (row >= m || column >= n)
                continue;
#if TYPE_BIAS < 5
            sums[i][j] += element<TYPE_BIAS>(bias, column);
#endif
            out[row * n + column] = static_cast<Out>(sums[i][j]);
        }
}
