// before: persistent blocks get their tiles by arithmetic on the block's index, whatever the tiles take
//   for (int n = 0; locate(nth(n), tile); ++n) work(tile);

// after: a counter in device memory, zero at the start of each launch (adapt: a workspace that is cleared before it)
//   int *taken
__shared__ int order[8];                       // numbers of the tiles at work: a ring, more places than tiles in flight
// one more mbarrier a place, with one arrival: ordered + 8 * i

// the producer's thread: the first tile without the counter, and each next number asked for one tile ahead
int t = blockIdx.x;
for (int n = 0;; ++n) {
    order[n % 8] = t;                          // the place is free: roles are fewer tiles apart than the ring is long
    arrive(ordered + 8 * (n % 8));             // mbarrier.arrive.shared::cta.b64 _, [%0];  releases the number
    if (!locate(t, tile))                      // past the last tile: told to the others, too
        break;
    t = gridDim.x + atomicAdd(taken, 1);       // answered while the slabs of this tile are fetched
    for (int block = 0; block < tile.blocks; ++block)
        fetch(tile, block);
}

// any other role of the block (here: a helper warp that copies what a tile has of its own, and describes it to consumers)
for (int n = 0; ; ++n) {
    waitPhase(ordered + 8 * (n % 8), n / 8 % 2);  // parity of the n / 8 th use of the place
    if (!locate(order[n % 8], tile))
        break;                                 // adapt: say so to the consumers, as a tile of no blocks
    work(tile);
}
// Tiles that take longest come first in the order of numbers, so that what is left at the end is short.
