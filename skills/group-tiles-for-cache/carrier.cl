// Only the launch plan changes. MR × 16 is the tile of one work-item.

+   [[tunable]]
+   name = "WGX"                     # tiles side by side: they share rows of a
+   default = 4                      # adapt: sizes, caches, cores
+   values = [1, 2, 4, 8]
+
+   [[tunable]]
+   name = "WGY"                     # tiles below each other: they share columns of b
+   default = 4
+   values = [1, 2, 4, 8]

    [[launch]]
    kernel = "sgemm"
    when = "M >= MR && N >= 16"
-   grid = ["ceil_div(N, 16 * 16)", "ceil_div(M, 16 * MR)"]
-   block = ["16", "16"]
+   grid = ["ceil_div(N, WGX * 16)", "ceil_div(M, WGY * MR)"]
+   block = ["WGX", "WGY"]

// A CPU device runs the work-items of a group one after another on one core. Choose the group so that
//   WGY · MR rows of a  +  WGX · 16 columns of b  (both K long)   fit the core's private cache, and
//   (N / (WGX · 16)) · (M / (WGY · MR))  groups                   is many times the number of cores.
// The kernel must take its place from get_global_id alone: no barrier, no local memory, no get_local_size.
