/*klineage
surface = "opencl"

[[tunable]]
name = "KIND"
default = 0
values = [0, 1, 2]

[[launch]]
kernel = "stream"
grid = ["GROUPS"]
block = ["1"]
args = ["a", "b", "long VECTORS", "int PASSES"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Moves memory as fast as the device can: each work-group owns one contiguous part, as one core does. KIND 0 copies, 1 reads,
// 2 writes. VECTORS are of 16 floats, and a whole number for each group.
__kernel void stream(__global const float16 *restrict a, __global float16 *restrict b, long vectors, int passes)
{
    long share = vectors / get_num_groups(0);
    a += share * get_group_id(0);
#if KIND != 1
    b += share * get_group_id(0);
#endif
#if KIND == 0
    for (int pass = 0; pass < passes; ++pass)
        for (long i = 0; i < share; ++i)
            b[i] = a[i];
#elif KIND == 1
    float16 s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
    for (int pass = 0; pass < passes; ++pass)
        for (long i = 0; i + 3 < share; i += 4) {
            s0 += a[i];
            s1 += a[i + 1];
            s2 += a[i + 2];
            s3 += a[i + 3];
        }
    b[get_group_id(0)] = (s0 + s1) + (s2 + s3);
#else
    for (int pass = 0; pass < passes; ++pass) {
        float16 value = (float)pass;
        for (long i = 0; i < share; ++i)
            b[i] = value;
    }
#endif
}
