// Takes two more of a group into its largest and second largest.
__device__ void mergeTwo(unsigned &most, unsigned &second, unsigned larger, unsigned smaller)
{
    second = max(min(most, larger), max(second, smaller));
    most = max(most, larger);
}

// The largest and the second largest of the elements of 4 neighbouring lanes, each of which has its own two.
__device__ void twoLargestOfFourLanes(unsigned &most, unsigned &second)
{
#pragma unroll
    for (int mask = 1; mask < 4; mask *= 2) {
        const unsigned larger = __shfl_xor_sync(0xffffffff, most, mask);
        const unsigned smaller = __shfl_xor_sync(0xffffffff, second, mask);
        mergeTwo(most, second, larger, smaller);
    }
}
