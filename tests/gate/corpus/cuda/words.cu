/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 32)"]
block = [64]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Whole numbers of 32 bits, four by four sums a thread: the parent of others.

constexpr int SIDE = 32, DEPTH = 16, PITCH = SIDE + 4;
template <typename T>
struct __align__(16) Four {
    T at[4];
};
// A tile of 32 by 32, of which a thread has four by four; terms lie one row after the other.
template <typename T>
__device__ __forceinline__ void tile(const int *a, const int *b, int *c, int M, int N, int K)
{
    __shared__ __align__(16) T as[DEPTH][PITCH], bs[DEPTH][PITCH];
    const int row0 = blockIdx.y * SIDE, col0 = blockIdx.x * SIDE, down = threadIdx.x / 8 * 4, right = threadIdx.x % 8 * 4;
    T sum[4][4] = {};
    for (int first = 0; first < K; first += DEPTH) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int at = threadIdx.x + i * 64;
            const int rowA = at / DEPTH, kA = at % DEPTH, kB = at / SIDE, colB = at % SIDE;
            as[kA][rowA] = row0 + rowA < M && first + kA < K ? T(a[size_t(row0 + rowA) * K + first + kA]) : T(0);
            bs[kB][colB] = col0 + colB < N && first + kB < K ? T(b[size_t(first + kB) * N + col0 + colB]) : T(0);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            const Four<T> x = *reinterpret_cast<const Four<T> *>(&as[k][down]), w = *reinterpret_cast<const Four<T> *>(&bs[k][right]);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[i][j] += x.at[i] * w.at[j];
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (row0 + down + i < M && col0 + right + j < N)
                c[size_t(row0 + down + i) * N + col0 + right + j] = int(sum[i][j]);
}
extern "C" __global__ __launch_bounds__(64) void product(const int *a, const int *b, int *c, int M, int N, int K)
{
    tile<int>(a, b, c, M, N, K);
}
