/*klineage
surface = "opencl"

[[tunable]]
name = "DOUBLE"
default = 0
values = [0, 1]

[[tunable]]
name = "WIDTH"
default = 8
values = [4, 8, 16]

[[tunable]]
name = "FUSED"
default = 1
values = [0, 1]

[[launch]]
kernel = "multiply_add"
grid = ["GROUPS"]
block = ["1"]
args = ["b", "int ROUNDS"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Independent chains of vectorised multiply-adds, enough of them to hide the latency of each: 10 × 8 × WIDTH × 2 operations a round.
// mad() may become two instructions, which take longer than one; fma() is one, or a slow call where the device has none.
#if FUSED
#define MULTIPLY_ADD fma
#else
#define MULTIPLY_ADD mad
#endif
#if DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define SCALAR double
#else
#define SCALAR float
#endif
#define JOIN(a, b) a##b
#define VECTOR_OF(scalar, width) JOIN(scalar, width)
#define VECTOR VECTOR_OF(SCALAR, WIDTH)
#define STEP \
    x0 = MULTIPLY_ADD(x0, m, c); \
    x1 = MULTIPLY_ADD(x1, m, c); \
    x2 = MULTIPLY_ADD(x2, m, c); \
    x3 = MULTIPLY_ADD(x3, m, c); \
    x4 = MULTIPLY_ADD(x4, m, c); \
    x5 = MULTIPLY_ADD(x5, m, c); \
    x6 = MULTIPLY_ADD(x6, m, c); \
    x7 = MULTIPLY_ADD(x7, m, c); \
    x8 = MULTIPLY_ADD(x8, m, c); \
    x9 = MULTIPLY_ADD(x9, m, c);

__kernel void multiply_add(__global VECTOR *b, int rounds)
{
    // Read from memory, so that nothing is known when this is compiled.
    VECTOR m = b[2 * get_group_id(0)];
    VECTOR c = b[2 * get_group_id(0) + 1];
    VECTOR x0 = c, x1 = c + m, x2 = c - m, x3 = c * m, x4 = c + c, x5 = m + m, x6 = m * m, x7 = c * c, x8 = m - c,
           x9 = m;
    for (int round = 0; round < rounds; ++round) {
        STEP STEP STEP STEP STEP STEP STEP STEP
    }
    b[2 * get_group_id(0)] = m + 0 * (((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7)) + (x8 + x9));
}
