/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = [16, 16]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Tiles of both operands by asynchronous copies of four bytes, three stages deep; what lies beyond an edge is filled with zeros by the copy itself.

__device__ __forceinline__ void fetch(float *to, const float *from, bool is)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 : : "r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "r"(is ? 4 : 0) : "memory");
}

extern "C" __global__ __launch_bounds__(256) void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    __shared__ float left[3][16][17], right[3][16][17];
    const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    const int steps = (K + 15) / 16;
    const auto stage = [&](int step) {
        if (step < steps) {
            const int k = step * 16;
            const bool isLeft = row < M && k + tx < K, isRight = col < N && k + ty < K;
            fetch(&left[step % 3][ty][tx], isLeft ? a + size_t(row) * K + k + tx : a, isLeft);
            fetch(&right[step % 3][ty][tx], isRight ? b + size_t(k + ty) * N + col : b, isRight);
        }
        asm volatile("cp.async.commit_group;" : : : "memory");
    };
    stage(0);
    stage(1);
    float sum = 0.0f;
    for (int step = 0; step < steps; ++step) {
        stage(step + 2);
        asm volatile("cp.async.wait_group 2;" : : : "memory");
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k)
            sum = fmaf(left[step % 3][ty][k], right[step % 3][k][tx], sum);
        __syncthreads();
    }
    if (row < M && col < N)
        c[size_t(row) * N + col] = sum;
}
