struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

// Arrives, and lets the phase end only after `bytes` have been copied.
__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

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

// Starts the copy of one box, from this column of row `row`.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}

// Four 8 x 8 matrices; lanes 8i ... 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

// Where the 128-byte swizzle keeps a 16-byte chunk of a row.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk ^ (row % 8)) * 16;
}
