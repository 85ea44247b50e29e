// before: persistent blocks deal sorted tiles (the longest first) in turns; block 0 has the longest of every round
//   for (int t = blockIdx.x; locate(t, tile); t += gridDim.x)
//       work(tile);

// after: every other round of the grid goes backwards, so that the block with the longest of one round has the shortest
// of the next; the same function for all roles of the block (producer, its helper warps, consumers)
const auto nth = [&](int n) {
    return n * int(gridDim.x) + (n % 2 ? int(gridDim.x) - 1 - int(blockIdx.x) : int(blockIdx.x));
};
for (int n = 0; locate(nth(n), tile); ++n)
    work(tile);
// It ends at the first index past the last tile: later rounds lie past it as well, for every block.
// adapt: `locate` gives tiles in falling order of work (here: of a segment, the tile with the most blocks of all groups
// first, index / groups from the end); a one-dimensional grid of at most one block a multiprocessor
