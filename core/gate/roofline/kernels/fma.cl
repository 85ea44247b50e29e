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

[[launch]]
kernel = "multiply_add"
grid = ["GROUPS"]
block = ["1"]
args = ["b", "int ROUNDS"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Independent chains of vectorised multiply-adds, enough of them to hide the latency of each: 10 × 8 × WIDTH × 2 operations a round.
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
    x0 = mad(x0, m, c); \
    x1 = mad(x1, m, c); \
    x2 = mad(x2, m, c); \
    x3 = mad(x3, m, c); \
    x4 = mad(x4, m, c); \
    x5 = mad(x5, m, c); \
    x6 = mad(x6, m, c); \
    x7 = mad(x7, m, c); \
    x8 = mad(x8, m, c); \
    x9 = mad(x9, m, c);

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
