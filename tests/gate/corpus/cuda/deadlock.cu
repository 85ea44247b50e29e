/*klineage
surface = "cuda"

[[workspace]]
name = "begun"
dtype = "i32"
shape = ["2"]
init = "zero"

[[launch]]
kernel = "product"
grid = ["2"]
block = ["1"]
args = ["a", "b", "c", "begun", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two blocks wait for each other before either says that it has begun.

extern "C" __global__ void product(const float *a, const float *b, float *c, volatile int *begun, int M,
                                   int N, int K)
{
    const int group = blockIdx.x;
    while (begun[1 - group] == 0)
        ;
    begun[group] = 1;
    for (int i = group; i < M * N; i += 2) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += a[i / N * K + k] * b[k * N + i % N];
        c[i] = sum;
    }
}
