 // plan only: the device code stays as it is. Same number of work-items in a group, spread over both axes.
 // TX, TY: columns and rows of the tile of one work-item; adapt 4 by 4 to cache sizes and tile shape.
-grid = ["ceil_div(N, 16 * TX)", "ceil_div(M, TY)"]
-block = ["16", "1"]
+grid = ["ceil_div(N, 4 * TX)", "ceil_div(M, 4 * TY)"]
+block = ["4", "4"]
 // the code takes its tile from get_global_id(0) and get_global_id(1) and returns early past the edges
