// A loop over steps (chunks, tiles) whose carried value the next step needs. Before: each step ended with its outputs'
// store, by the threads that compute, and the next step's critical work began after it.
// Launch: 32 threads more; dynamic shared memory + ROOMS * ROOM_BYTES, from an address that is a multiple of 1024.
// Tensor map of the outputs: box = STEP_ROWS rows of ROW_BYTES, swizzle as ROW_BYTES says; the stepped axis is a dimension
// of its own with its true length, so that the rows of a partial last step are clipped and need no predicate.

// Once, before the __syncthreads() that ends the set-up; every role returns alone, so no block-wide barrier may come later.
if (threadIdx.x == 0) {
    initRooms(roomFull, roomEmpty, COMPUTING_WARPS);           // adapt: how many warps write a room
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__syncthreads();
if (warp == STORING_WARP) {                                    // a warp of its own: its waits stop nobody
    if (lane == 0)
        storeSteps(mapOut, column0, outer, steps, rooms, roomFull, roomEmpty);
    return;
}

// In the warps that compute. out[] stays in registers past the end of its step.
for (int i = 0; i < 32; ++i)
    out[i] = 0.0f;                                             // number 0: written, handed over, stored by nobody
for (int step = 0; step < steps; ++step) {
    // 1. First what the carried value waits for: issue it, commit it as a group of its own.
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    /* critical products of this step */
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    /* loads of the vector work's other operands */

    // 2. In their shadow the outputs of the step BEFORE leave the registers.
    const int room = step % ROOMS;
    waitPhase(roomEmpty + 8 * room, (step / ROOMS & 1) ^ 1);   // passes in the first ROOMS steps
    for (int i = 0; i < 32; ++i)                               // m64n64 sums whose rows are columns of the outputs:
        asm volatile("st.shared.f32 [%0], %1;"                 // places[h][j] = rooms + box of this warp * BOX_BYTES
                     :: "r"(places[i / 2 % 2][i % 2] + room * ROOM_BYTES   //  + placeInBox(2 * (lane % 4) + j,
                            + i / 4 * 8 * ROW_BYTES), "f"(out[i]) : "memory"); // 4 * (column in box + lane / 4 + 8 * h))
    __syncwarp();

    // 3. Only now products that overwrite out[], as a later group; keep the compiler from mixing both.
    for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(out[i]) :: "memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    /* products of this step's outputs */
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); // the critical group alone
    /* vector work on the critical results; next critical products */

    // 4. Hand over where the threads would wait for products anyway: the fence then costs nothing.
    fenceAsyncProxy();                                         // every thread that wrote
    __syncwarp();
    arriveFirstLane(roomFull + 8 * room, lane);
    /* rest of the step */
-   /* wait for the copy before; outputs to shared memory; fence; copy, or stores from registers */
}
// 5. The last step's outputs: once more, as number `steps`.
const int room = steps % ROOMS;
waitPhase(roomEmpty + 8 * room, (steps / ROOMS & 1) ^ 1);
/* st.shared as above, with this room */
fenceAsyncProxy();
__syncwarp();
arriveFirstLane(roomFull + 8 * room, lane);

// Smaller form, without a warp more: one room a warp; at the end of a step its first lane runs waitStoresRead(), __syncwarp(),
// all lanes write and fenceAsyncProxy(), __syncwarp(), the first lane storeBox() and commitStores(); after the loop waitStoresRead().
