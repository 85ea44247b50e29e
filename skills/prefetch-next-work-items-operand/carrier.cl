 // before the loop: where the next work-item of the same core will read; adapt the distance (here one
 // vector of 16 columns). Clamped, so that the address stays inside of the operand.
+    __global const float *next = b + min(16, N - 16 - col);
     for (int k = 0; k < K; ++k) {
+        __builtin_prefetch(next + k * N);    // one hint a step: one cache line, of the same row
         float16 bk = vload16(0, b + k * N);  // stride of a whole row: a new line in every step
         // ... multiply-adds on bk, enough of them to hide the hint
     }
