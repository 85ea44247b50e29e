/*klineage
surface = "cuda"

[[workspace]]
name = "next"
dtype = "i32"
shape = ["1"]
init = "zero"

[[launch]]
kernel = "product"
grid = ["sm_count"]
block = ["64"]
args = ["a", "b", "c", "next", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A few blocks fetch their rows from an atomic counter in a cleared workspace until there are none left.

extern "C" __global__ void product(const float *a, const float *b, float *c, int *next, int M, int N, int K)
{
    __shared__ int taken;
    for (;;) {
        if (threadIdx.x == 0)
            taken = atomicAdd(next, 1);
        __syncthreads();
        const int row = taken;
        __syncthreads();
        if (row >= M)
            break;
        for (int col = threadIdx.x; col < N; col += blockDim.x) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += a[row * K + k] * b[k * N + col];
            c[row * N + col] = sum;
        }
    }
}
