/*klineage
surface = "cuda"

[[tunable]]
name = "WIDE"
default = 1
values = [0, 1]

[[launch]]
kernel = "countChanged"
grid = ["ceil_div(BYTES, 1048576)"]
block = ["256"]
args = ["a", "b", "counts", "long BYTES"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// How many words of 8 bytes, of a mebibyte a block, are not the same in a and b; what is left at the end counts byte by byte.
#define BYTES_OF_BLOCK 1048576

extern "C" __global__ void __launch_bounds__(256)
    countChanged(const i64 *a, const i64 *b, i64 *counts, i64 bytes)
{
    __shared__ i64 parts[256];
    const i64 begin = static_cast<i64>(blockIdx.x) * BYTES_OF_BLOCK;
    const i64 end = begin + BYTES_OF_BLOCK < bytes ? begin + BYTES_OF_BLOCK : bytes;
    i64 changed = 0;
    for (i64 i = begin / 8 + threadIdx.x; i < end / 8; i += 256)
        changed += a[i] != b[i];
    if (threadIdx.x == 0) {
        for (i64 i = end / 8 * 8; i < end; ++i)
            changed += reinterpret_cast<const u8 *>(a)[i] != reinterpret_cast<const u8 *>(b)[i];
    }
    parts[threadIdx.x] = changed;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (static_cast<int>(threadIdx.x) < half)
            parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        counts[blockIdx.x] = parts[0];
}
