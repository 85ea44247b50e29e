struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// What is handed over for one tile, as it will lie in the next kernel's shared memory (adapt): 64 x 64 swizzled numbers of
// 16 bits for each product, and factors in single precision behind them.
constexpr int ROWS = 64, PRODUCTS = 2, FACTORS = 3 * ROWS;
constexpr int PART_BYTES = ROWS * 128;
constexpr int TILE_BYTES = PRODUCTS * PART_BYTES + FACTORS * 4;
static_assert(TILE_BYTES % 16 == 0 && PART_BYTES % 1024 == 0, "copies of 16 bytes, swizzle of 1024");

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void fenceBarriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// What this thread wrote to shared memory becomes visible to the copy engine and the tensor cores.
__device__ __forceinline__ void fenceAsync()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Arrives, and lets the phase end only after `bytes` have been copied.
__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
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

// Starts the copy of one box of an operand; rows after the tensor's last one become zeros.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int head, int row, int batch,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(head), "r"(row), "r"(batch), "r"(barrier) : "memory");
}

// Starts the copy of contiguous bytes to shared memory: the consumer's side.
__device__ __forceinline__ void copyBytes(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier) : "memory");
}

// Starts the copy of contiguous bytes from shared memory: the producer's side.
__device__ __forceinline__ void storeBytes(void *to, unsigned from, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(__cvta_generic_to_global(to)), "r"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commitStores()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until the copy engine has read all that this thread's stores send.
__device__ __forceinline__ void waitStoresRead()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Waits until this thread's stores have been written.
__device__ __forceinline__ void waitStores()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Where 8 numbers of 16 bits of a row lie in a part, which TMA and wgmma know as swizzle 128B.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return row * 128 + (chunk % 8 ^ row % 8) * 16;
}

// Describes rows of 128 swizzled bytes to wgmma, 1024 bytes from one group of 8 rows to the next.
__device__ __forceinline__ unsigned long long describeRows(unsigned address)
{
    return (address & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d = a · bᵀ, or d += it; 64 × 16 times 16 × 64, both in shared memory, in the background, by a whole warpgroup.
__device__ __forceinline__ void multiplyTiles(float (&d)[32], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, accumulate, 1, 1, 0, 0;\n"
        "}"
        : SUMS32(0)
        : "l"(a), "l"(b), "r"(accumulate));
}
