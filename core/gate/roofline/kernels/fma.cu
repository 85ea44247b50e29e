/*klineage
surface = "cuda"

[[tunable]]
name = "DOUBLE"
default = 0
values = [0, 1]

[[launch]]
kernel = "multiply_add"
grid = ["GROUPS"]
block = ["512"]
args = ["b", "int ROUNDS"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Independent chains of multiply-adds: 8 × 16 × 2 operations a thread and round.
#if DOUBLE
typedef double Scalar;
#define MULTIPLY_ADD fma
#else
typedef float Scalar;
#define MULTIPLY_ADD fmaf
#endif

extern "C" __global__ void __launch_bounds__(512) multiply_add(Scalar *b, int rounds)
{
    const Scalar m = Scalar(0.999) + Scalar(1e-6) * Scalar(threadIdx.x);
    const Scalar c = Scalar(1e-3) * Scalar(blockIdx.x + 1);
    Scalar x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
        x[i] = Scalar(i) + c;
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int k = 0; k < 8; ++k)
#pragma unroll
            for (int i = 0; i < 16; ++i)
                x[i] = MULTIPLY_ADD(x[i], m, c);
    }
    Scalar sum = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i)
        sum += x[i];
    if (sum == Scalar(-1)) // never: all terms are positive
        b[threadIdx.x] = sum;
}
