// Before: the vector work after a wait loads its other operands from shared memory itself, and each product works out
// its descriptor from an address in a per-thread register.
//   product(d, a, ((tile + offset) & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62);
//   asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
//   asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
//   for (...) { factor = shared[...]; ldmatrix(values, ...); r = f(values, factor, d); }

// After, 1: the constant part of a descriptor is a constant, and the address, in units of 16 bytes, is taken from one
// lane, so that the compiler knows it to be the same in all lanes and keeps descriptors in uniform registers.
constexpr unsigned long long DESCRIPTOR = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;   // adapt: the tile's layout
const unsigned tiles = __shfl_sync(~0u, (stageAddress & 0x3ffff) >> 4, 0);                // once an iteration
#pragma unroll
for (int step = 0; step < STEPS; ++step)
    product(d, a[step], DESCRIPTOR + (tiles + (TILE + step * 32) / 16), step > 0);        // TILE: a constant offset
asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");

// After, 2: what the vector work needs beside the result is loaded to registers between the commit and the wait.
unsigned values[4][4];
float2 factor[8];
#pragma unroll
for (int n = 0; n < 4; ++n)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(values[n][0]), "=r"(values[n][1]), "=r"(values[n][2]), "=r"(values[n][3])
                 : "r"(rowAddress(n)) : "memory");
#pragma unroll
for (int n = 0; n < 8; ++n)
    factor[n] = *reinterpret_cast<const float2 *>(gates + n * 8);
asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");   // the loads are done, or under way, by now
hold(d);                                                         // asm volatile("" : "+f"(d[i]) :: "memory") on each
// vector work from registers alone; factors that a later step needs again stay where they are
