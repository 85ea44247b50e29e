// The turns of two consumer warpgroups, named barriers 1 and 2: of each, one consumer waits for what the other gives.
__device__ __forceinline__ void waitTurn(int consumer)
{
    asm volatile("bar.sync %0, 256;" :: "r"(1 + consumer) : "memory");
}

__device__ __forceinline__ void giveTurn(int consumer)
{
    asm volatile("bar.arrive %0, 256;" :: "r"(1 + consumer) : "memory");
}
