// Blocks a multiprocessor by registers: 65536 / (threads * registers, rounded up to a multiple of 8). With 128 threads:
//   up to 168 registers 3 blocks, up to 128 registers 4, up to 96 registers 5.
// By shared memory: bytes a multiprocessor / (bytes a block + 1024). By rounds: ceil(blocks / (multiprocessors * blocks each)).
// The second argument pays where the kernel stands a little above such a step and the next step also takes a whole round away.
-extern "C" __global__ void __launch_bounds__(128)
+extern "C" __global__ void __launch_bounds__(128, 4)
     prepare(...)
// Adapt: threads a block, and the blocks wanted; then see in the compiler's report (-Xptxas -v) that nothing is spilled, and that
// shared memory does not hold the number down.
