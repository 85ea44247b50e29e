// The order of floats as that of unsigned integers. 0 is below all of them, and stands for no element.
__device__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

__device__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (unsigned(~int(key) >> 31) | 0x80000000u));
}

struct Cut {
    unsigned bin;    // the digit in which the element that is looked for lies, the largest digit first
    unsigned before; // elements in the bins above
    unsigned count;  // elements in it
};

// By one whole warp: adds up 256 bins in shared memory from the top, 8 a lane.
__device__ void findCut(const unsigned *bins, unsigned need, unsigned lane, Cut *found)
{
    unsigned sum = 0;
#pragma unroll
    for (int b = 0; b < 8; ++b)
        sum += bins[8 * lane + b];
    unsigned running = sum;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffff, running, step);
        running += lane >= step ? other : 0;
    }
    running -= sum;
#pragma unroll
    for (int b = 0; b < 8; ++b) {
        const unsigned count = bins[8 * lane + b];
        if (running < need && need <= running + count)
            *found = {unsigned(8 * lane + b), running, count};
        running += count;
    }
}
