// SPDX-License-Identifier: GPL-3.0-or-later
// From softmax/sm90/K02: every lane of a whole warp gets the result.

// Every lane gets the result, without shared memory or a barrier.
__device__ float warpMax(float v)
{
    for (int mask = 16; mask > 0; mask /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, mask));
    return v;
}

__device__ float warpSum(float v)
{
    for (int mask = 16; mask > 0; mask /= 2)
        v += __shfl_xor_sync(0xffffffff, v, mask);
    return v;
}
