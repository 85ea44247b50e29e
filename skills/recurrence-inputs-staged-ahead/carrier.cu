// Before: each step of the serial loop loads its own inputs from global memory, and waits for them.
//   for (int t = 0; t < steps; ++t) { x = input[t * ROW + lane]; g = gate[t]; state = f(state, x, g); }

// After: a block of STEPS steps is worked on in shared memory, while cp.async brings the next block.
constexpr int STEPS = 16, ROW = 128, THREADS = 128;      // adapt: two stages of STEPS steps fit in shared memory
struct Stage {
    __nv_bfloat16 x[STEPS][ROW];                         // adapt: every input of a step; rows of whole 16-byte chunks
    float g[STEPS];                                      // a scalar a step goes by copies of 4 bytes
};
__shared__ __align__(16) Stage stages[2];

const auto load = [&](int t0) {                          // every thread calls it, and every call is one group
    Stage &stage = stages[t0 / STEPS % 2];
    for (int i = threadIdx.x; i < STEPS * (ROW / 8); i += THREADS) {
        const int t = i / (ROW / 8), chunk = i % (ROW / 8);
        const bool valid = t0 + t < steps;               // past the end: a legal address, and zeros
        const size_t at = valid ? t0 + t : 0;
        const unsigned to = unsigned(__cvta_generic_to_shared(&stage.x[t][chunk * 8]));
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(to), "l"(input + at * PITCH + chunk * 8), "r"(valid ? 16 : 0) : "memory");
    }
    if (threadIdx.x < STEPS) {
        const int t = threadIdx.x;
        const bool valid = t0 + t < steps;
        const unsigned to = unsigned(__cvta_generic_to_shared(&stage.g[t]));
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                     :: "r"(to), "l"(gate + (valid ? t0 + t : 0)), "r"(valid ? 4 : 0) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
};

load(0);
for (int t0 = 0; t0 < steps; t0 += STEPS) {
    if (t0 + STEPS < steps)
        load(t0 + STEPS);                                // the next block, in the background
    else
        asm volatile("cp.async.commit_group;" ::: "memory"); // an empty group keeps the count right
    asm volatile("cp.async.wait_group 1;" ::: "memory"); // all groups but the newest have landed
    __syncthreads();                                     // and those of the other threads too

    const Stage &stage = stages[t0 / STEPS % 2];
    const int count = min(STEPS, steps - t0);
    for (int t = 0; t < count; ++t) {
        // Chunks of 16 bytes: a lane owns 8 neighbouring elements, ROW / 2 apart, so that the lanes of a group
        // read neighbouring chunks. The state has to be spread over the lanes in the same order.
        const uint4 chunk = *reinterpret_cast<const uint4 *>(&stage.x[t][part * 8]);
        // bf16 pairs to float: __uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)
        // adapt: the step itself
    }
    __syncthreads();                                     // the next load overwrites this stage
}
