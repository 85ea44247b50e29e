 // plan: a work-item now covers 16 neighbours, so the grid shrinks by 16 along that axis.
 // Rows narrower than a vector go to the old scalar kernel, under the opposite guard.
-grid = ["ceil_div(N, WG)", "M"]
+when = "N >= 16"
+grid = ["ceil_div(N, WG * 16)", "M"]

 // code: adapt the width to the platform's vector registers
-    int col = get_global_id(0);
+    int col = get_global_id(0) * 16;
     int row = get_global_id(1);
     if (row >= M || col >= N)
         return;
+    col = min(col, N - 16);  // the last vector slides back, recomputing elements of its neighbour

-    float sum = 0.0f;
+    float16 sum = 0.0f;
     for (int k = 0; k < K; ++k)
-        sum += a[row * K + k] * b[k * N + col];          // a: the same for all columns; b: contiguous
-    c[row * N + col] = sum;
+        sum += a[row * K + k] * vload16(0, b + k * N + col);  // the scalar of a is broadcast
+    vstore16(sum, 0, c + row * N + col);                  // vload16/vstore16 need no alignment
