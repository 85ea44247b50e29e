// before: a producer and two consumer warpgroups, 64 rows each
//   constexpr int CONSUMERS = 2, BM = 64 * CONSUMERS;     __launch_bounds__(384, 1)
//   producer  giveRegisters<40>();                        consumers  takeRegisters<232>();

// after: a third consumer. Every slab serves 192 rows; while one consumer does scalar work or waits, two multiply.
constexpr int CONSUMERS = 3, BM = 64 * CONSUMERS;       // __launch_bounds__(512, 1): compiled for 128 registers a thread
// registers: 128 * 32 + 3 * 128 * 160 = 65536, the whole file; multiples of 8
//   setmaxnreg.dec.sync.aligned.u32 32;                 // the producer's warpgroup, all of its warps
//   setmaxnreg.inc.sync.aligned.u32 160;                // each consumer
// 160 hold: 64 sums of the result, 64 scores, 32 packed weights that overwrite dead scores. So one thing after the
// other in a consumer: product, wait, scalar work, product, wait. Overlap comes from the other two.

for (int i = 0; i < STAGES; ++i) {
    initBarrier(full + 8 * i, 1);
    initBarrier(empty + 8 * i, 4 * CONSUMERS);          // one arrival a consumer warp, 12 now
}
// shared memory: BM rows of the left operand and one ring of slabs, here (192 + STAGES * 128) * 128 * 2 + 1024 bytes;
// a second buffer of the left operand has to go for it (adapt)

const int consumer = warpgroup - 1, warpRow = consumer * 64 + thread / 32 % 4 * 16;
// A consumer that has no rows of a tile, or no more blocks, still takes part in the ring:
const auto leave = [&] {
    if (lane == 0)
        arrive(empty + 8 * stage);                      // mbarrier.arrive.shared::cta.b64 _, [%0];
    advance();
};
for (int block = 0; block < blocks; ++block) {          // `blocks` of the tile, the same as the producer's
    waitPhase(full + 8 * stage, phase);
    if (block >= mine) {                                // `mine`: of this consumer's rows; 0 where it has none
        leave();
        waitPhase(full + 8 * stage, phase);             // both slabs of the step
        leave();
        continue;
    }
    // first product; wgmma.wait_group.sync.aligned 0; scalar work on its sums; leave();
    // waitPhase for the second slab; second product; wgmma.wait_group.sync.aligned 0; leave();
}

// A tile of 192 rows is more often not full. Where tiles differ in work, count them from the end, so that the one that
// is not full is the one with the least to do; row0 and rows of tile `index` of `tilesHere`:
const int after = tilesHere - 1 - index;
const int row0 = max(begin, end - (after + 1) * BM), rows = end - after * BM - row0;
