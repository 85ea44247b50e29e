// The tile that this block takes in round n of a one-dimensional grid: rounds go there and back.
__device__ __forceinline__ int tileOfRound(int n)
{
    return n * int(gridDim.x) + (n % 2 ? int(gridDim.x) - 1 - int(blockIdx.x) : int(blockIdx.x));
}
