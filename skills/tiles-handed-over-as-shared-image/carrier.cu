// Two launches: one prepares a tile for each (group, chunk), the next copies the tiles into its ring of stages.
// Workspace: one tensor of tiles, TILE_BYTES each, in place of one tensor, with a tensor map of its own, for each part.

// ---- The preparing launch: one warpgroup a tile.
-   /* cp.async or loads by all threads; ldmatrix + mma.sync, a warp for some of the blocks */
+   const unsigned left = tiles, right = tiles + 2 * PART_BYTES;     // multiples of 1024; adapt: two halves of 64 columns each
+   if (thread == 0) { initBarrier(copied, 1); fenceBarriers(); }
+   __syncthreads();
+   if (thread == 0) {
+       expectBytes(copied, 4 * PART_BYTES);                         // full boxes, also where rows are beyond the end
+       for (int half = 0; half < 2; ++half) {                       // tensor maps: 64 rows of 64 numbers, swizzle "128B"
+           copyBox(left + half * PART_BYTES, mapLeft, half * 64, head, row0, batch, copied);
+           copyBox(right + half * PART_BYTES, mapRight, half * 64, head, row0, batch, copied);
+       }
+   }
    /* vector work that needs no product (factors, sums of gates, ...) runs meanwhile */
+   waitPhase(copied, 0);
+   asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
+   for (int step = 0; step < 8; ++step)                             // adapt: depth / 16; unroll
+       multiplyTiles(sums, describeRows(left + step / 4 * PART_BYTES + step % 4 * 32),
+                     describeRows(right + step / 4 * PART_BYTES + step % 4 * 32), step > 0);
    /* the second product alike, into sums of its own, all 64 columns even where only a triangle is used */
+   asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
+   asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
+   __syncthreads();                                                 // only if the image takes the operands' room

    // Number 4n + 2h + j of sums is at row 16 warp + lane / 4 + 8h, column 8n + 2 (lane % 4) + j. Mask and scale there, pack
    // pairs, and write them where the NEXT kernel's wgmma or ldmatrix will look for them: no bank conflicts.
-   *reinterpret_cast<unsigned *>(workspace + t * 64 + n * 8 + lane % 4 * 2) = packed;
+   *reinterpret_cast<unsigned *>(image + part * PART_BYTES + place(t, n) + lane % 4 * 4) = packed; // zeros where masked
    /* factors as float behind the parts, neutral ones for rows beyond the end */
+   fenceAsync();                                                    // every thread that wrote
+   __syncthreads();
+   if (thread == 0) {
+       storeBytes(workspace + size_t(tile) * TILE_BYTES, imageAddress, TILE_BYTES);
+       commitStores();
+   }
    /* several members a block: before the image is written again, thread 0 runs waitStoresRead(), then __syncthreads() */
+   if (thread == 0)
+       waitStores();                                                // before the block ends

// ---- The next launch: its copying thread.
-   copyBox(... part 0 ...); copyBox(... part 1 ...); copyBytes(... factors ...);
+   /* once, before the first tile, where launches overlap: */
+   asm volatile("griddepcontrol.wait;" ::: "memory");
+   expectBytes(full, OTHER_BYTES + TILE_BYTES);
+   copyBytes(stage + TILE_OFFSET, workspace + size_t(tile) * TILE_BYTES, TILE_BYTES, full); // TILE_OFFSET: a multiple of 1024
    /* its products read parts by describeRows(stage + TILE_OFFSET + part * PART_BYTES + step * 32), as before */
