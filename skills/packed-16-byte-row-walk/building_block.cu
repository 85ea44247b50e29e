struct alignas(16) Chunk {
    unsigned words[4]; // two bf16 numbers each, the first in the lower half
};

// Half of a word as a float: bf16 is the upper half of one.
__device__ __forceinline__ float low_half(unsigned word)
{
    return __uint_as_float(word << 16);
}

__device__ __forceinline__ float high_half(unsigned word)
{
    return __uint_as_float(word & 0xffff0000u);
}
