/*klineage
surface = "cuda"

[[tunable]]
name = "KIND"
default = 0
values = [0, 1, 2]

[[launch]]
kernel = "stream"
grid = ["GROUPS"]
block = ["512"]
args = ["a", "b", "long VECTORS", "int PASSES"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Moves memory as fast as the device can, past the L1. KIND 0 copies, 1 reads, 2 writes. VECTORS are of 16 bytes and a whole number
// of tiles of 2048.
extern "C" __global__ void __launch_bounds__(512)
    stream(const uint4 *__restrict__ a, uint4 *__restrict__ b, long long vectors, int passes)
{
    const long long step = 2048ll * gridDim.x;
#if KIND == 1
    uint4 sum = {0, 0, 0, 0};
#endif
    for (int pass = 0; pass < passes; ++pass) {
        for (long long at = 2048ll * blockIdx.x + threadIdx.x; at < vectors; at += step) {
#if KIND == 2
            const uint4 value = {unsigned(pass), unsigned(at), 1u, 2u};
#pragma unroll
            for (int i = 0; i < 4; ++i)
                __stcg(b + at + 512 * i, value);
#else
            uint4 value[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                value[i] = __ldcg(a + at + 512 * i);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#if KIND == 0
                __stcg(b + at + 512 * i, value[i]);
#else
                sum.x ^= value[i].x;
                sum.y ^= value[i].y;
                sum.z ^= value[i].z;
                sum.w ^= value[i].w;
#endif
            }
#endif
        }
    }
#if KIND == 1
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x9e3779b9u) // hardly ever, but the compiler cannot know
        b[threadIdx.x] = sum;
#endif
}
