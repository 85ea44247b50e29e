struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

constexpr int STEP_ROWS = 64;                // rows of outputs a step (adapt)
constexpr int ROOMS = 2;                     // steps whose outputs may lie in shared memory
constexpr int ROW_BYTES = 128;               // of a box: swizzle "128B"; or 64, swizzle "64B"
constexpr int BOXES = 2;                     // boxes of ROW_BYTES that cover the columns of a block (adapt)
constexpr int BOX_COLUMNS = ROW_BYTES / 4;   // of outputs in single precision (adapt)
constexpr int BOX_BYTES = STEP_ROWS * ROW_BYTES;
constexpr int ROOM_BYTES = BOXES * BOX_BYTES;
static_assert(BOX_BYTES % 1024 == 0, "the swizzle repeats every 1024 bytes");

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// The first lane arrives, without a branch.
__device__ __forceinline__ void arriveFirstLane(unsigned barrier, int lane)
{
    asm volatile("{\n"
                 ".reg .pred first;\n"
                 "setp.eq.s32 first, %1, 0;\n"
                 "@first mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                 "}" :: "r"(barrier), "r"(lane) : "memory");
}

// Waits for the end of the phase with this parity (0 for the first one; 1 passes at first).
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

// Makes this thread's writes to shared memory visible to the copy engine.
__device__ __forceinline__ void fenceAsyncProxy()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Starts the copy of a box from shared memory; rows after the tensor's last one are left out.
__device__ __forceinline__ void storeBox(const TensorMap &map, int column, int row, int outer, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];"
                 :: "l"(&map), "r"(column), "r"(row), "r"(outer), "r"(from) : "memory");
}

__device__ __forceinline__ void commitStores()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until the copy engine has read what this thread told it to store.
__device__ __forceinline__ void waitStoresRead()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Waits until it is written, too.
__device__ __forceinline__ void waitStores()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// By one thread, before a barrier of the block.
__device__ __forceinline__ void initRooms(unsigned roomFull, unsigned roomEmpty, int computingWarps)
{
    for (int room = 0; room < ROOMS; ++room) {
        initBarrier(roomFull + 8 * room, computingWarps);
        initBarrier(roomEmpty + 8 * room, 1);
    }
}

// Byte `byte` of a row in a swizzled box.
__device__ __forceinline__ unsigned placeInBox(int row, int byte)
{
    const int turn = ROW_BYTES == 128 ? row % 8 : row / 2 % 4;
    return row * ROW_BYTES + (byte / 16 ^ turn) * 16 + byte % 16;
}

// The storing warp's first lane: outputs number e are those of step e - 1, and number 0 are stored by nobody.
__device__ __forceinline__ void storeSteps(const TensorMap &map, int column, int outer, int steps, unsigned rooms,
                                           unsigned roomFull, unsigned roomEmpty)
{
    for (int e = 0; e <= steps; ++e) {
        const int room = e % ROOMS;
        waitPhase(roomFull + 8 * room, e / ROOMS & 1);
        if (e > 0) {
            for (int box = 0; box < BOXES; ++box)
                storeBox(map, column + box * BOX_COLUMNS, (e - 1) * STEP_ROWS, outer,
                         rooms + room * ROOM_BYTES + box * BOX_BYTES);
            commitStores();
            waitStoresRead();
        }
        arrive(roomEmpty + 8 * room);
    }
    waitStores();
}
