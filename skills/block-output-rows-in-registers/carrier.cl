 // plan: MR rows a work-item, so the grid shrinks by MR along that axis.
 // Shapes with fewer than MR rows go to the simple kernel, under the opposite guard.
-grid = ["ceil_div(N, WG * 16)", "M"]
+when = "M >= MR && N >= 16"
+grid = ["ceil_div(N, WG * 16)", "ceil_div(M, MR)"]

 // code: MR is a constant of the compilation, so that sum[] lives in registers.
 // Adapt it: MR vector sums, the loaded vector and a broadcast have to fit in the register file.
+#define MR 8
-    int row = get_global_id(1);
+    int row = get_global_id(1) * MR;
     if (row >= M || col >= N)
         return;
+    row = min(row, M - MR);  // the last tile slides back and recomputes rows of its neighbour

-    float16 sum = 0.0f;
+    float16 sum[MR];
+#pragma unroll
+    for (int i = 0; i < MR; ++i)
+        sum[i] = 0.0f;
     for (int k = 0; k < K; ++k) {
         float16 bk = vload16(0, b + k * N);  // loaded once for MR rows
-        sum += a[k] * bk;
+#pragma unroll
+        for (int i = 0; i < MR; ++i)         // MR independent chains of additions
+            sum[i] += a[i * K + k] * bk;
     }
-    vstore16(sum, 0, c);
+#pragma unroll
+    for (int i = 0; i < MR; ++i)
+        vstore16(sum[i], 0, c + i * N);
