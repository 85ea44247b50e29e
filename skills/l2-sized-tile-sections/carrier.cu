// before: the longest tiles of all groups first; `all` tiles a group, GROUPS groups, each with operands of its own
//   const int after = index / GROUPS;         // tiles after it in its group: 0 is the longest
//   group = index - after * GROUPS;

// after: sections of SECTION groups one after the other, the longest first in each
const int section = index / (SECTION * all), left = index - section * SECTION * all;
const int groups = min(SECTION, GROUPS - section * SECTION);   // the last section may have fewer
const int after = left / groups;
group = section * SECTION + left - after * groups;
// SECTION so that the shared operands of a section fit in L2 with room to spare:
//   SECTION * bytes of the operands of one group <= about 32 MiB on a device with 50 MB of L2 (adapt; tunable)

// Tiles have to be handed out in this order as blocks come free, by a shared counter:
t = gridDim.x + atomicAdd(taken, 1);
// never by rounds of the grid (t += gridDim.x): they fall in step with the sections
