/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["16", "R"]
block = [32]
cluster = [16]
shared = 16384
args = ["x", "y", "int C", "int 16384"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A cluster of sixteen blocks a row; each has its part in dynamic shared memory, of which it asks for sixteen kibibytes.

#include <cooperative_groups.h>
extern __shared__ float mine[];
extern "C" __global__ __launch_bounds__(32) void softmax(const float *x, float *y, int C, int bytes)
{
    const auto cluster = cooperative_groups::this_cluster();
    const int part = blockIdx.x, each = (C + 15) / 16, begin = min(part * each, C), count = min(each, C - begin);
    const float *in = x + size_t(blockIdx.y) * C + begin;
    float *out = y + size_t(blockIdx.y) * C + begin;
    const int room = bytes / 4 - 2; // what does not fit is read again
    float top = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < count; i += 32) {
        if (i < room)
            mine[2 + i] = in[i];
        top = fmaxf(top, in[i]);
    }
    for (int lane = 16; lane > 0; lane /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, lane));
    if (threadIdx.x == 0)
        mine[0] = top;
    cluster.sync();
    for (int other = 0; other < 16; ++other)
        top = fmaxf(top, *cluster.map_shared_rank(mine, other));
    float sum = 0;
    for (int i = threadIdx.x; i < count; i += 32)
        sum += expf((i < room ? mine[2 + i] : in[i]) - top);
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (threadIdx.x == 0)
        mine[1] = sum;
    cluster.sync();
    sum = 0;
    for (int other = 0; other < 16; ++other)
        sum += *cluster.map_shared_rank(mine + 1, other);
    for (int i = threadIdx.x; i < count; i += 32)
        out[i] = expf((i < room ? mine[2 + i] : in[i]) - top) / sum;
    cluster.sync(); // nobody leaves while others read
}
