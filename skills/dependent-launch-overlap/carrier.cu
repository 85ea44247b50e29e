// Host: the second launch may begin before the first has ended.
//   cudaLaunchAttribute attribute = {};
//   attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
//   attribute.val.programmaticStreamSerializationAllowed = 1;
//   config.attrs = &attribute; config.numAttrs = 1;
//   cudaLaunchKernelEx(&config, second, ...);          // in the same stream, right behind the first

// First kernel: every block says at once that the next launch may begin where there is room.
extern "C" __global__ void first(...)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");   // says nothing about results
    // ... the work as before ...
}

// Second kernel: everything that does not need the first one's results comes before the wait.
extern "C" __global__ void second(...)
{
    // barriers, loads of the initial state, addresses
    if (warp == COPYING_WARP) {
        if (lane == 0)
            for (int tile = 0; tile < tiles; ++tile) {
                waitPhase(empty, parity);
                expectBytes(full, bytes);
                copyBox(inputs of the tile);                          // inputs of the whole computation: at once
                if (tile == 0)
                    asm volatile("griddepcontrol.wait;" ::: "memory"); // the first launch has ended, its writes are visible
                copyBox(what the first kernel wrote);                 // adapt: each thread that reads it waits itself,
            }                                                         // or gets it from one that has waited
        return;
    }
    // the other warps wait for the full barrier alone
}
