constexpr int PLACES = 8; // numbers of tiles in flight in a block

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// Waits for the end of the phase with this parity (0 for the first one).
__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred ended;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, ended;\n"
                     "}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

// The n-th tile of this block is number t; barriers `ordered` count one arrival each.
__device__ __forceinline__ void tellTile(int (&order)[PLACES], unsigned ordered, int n, int t)
{
    order[n % PLACES] = t;
    arrive(ordered + 8 * (n % PLACES));
}

__device__ __forceinline__ int heardTile(const int (&order)[PLACES], unsigned ordered, int n)
{
    waitPhase(ordered + 8 * (n % PLACES), n / PLACES % 2);
    return order[n % PLACES];
}

// The next number for a block of a one-dimensional grid, whose blocks began with their own index.
__device__ __forceinline__ int nextTile(int *taken)
{
    return gridDim.x + atomicAdd(taken, 1);
}
