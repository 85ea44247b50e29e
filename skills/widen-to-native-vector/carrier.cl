// float4, the habit of a GPU → the width of the CPU's vector register. Adapt: 16 for AVX-512, 8 for AVX2.

//  launch plan: fewer work-items along the columns, and the fast path needs a wider matrix
-   when = "M >= MR && N >= 4"
-   grid = ["ceil_div(N, 16 * 4)", "ceil_div(M, 16 * MR)"]
+   when = "M >= MR && N >= 16"                              // and the complement for the kernel of small matrices
+   grid = ["ceil_div(N, 16 * 16)", "ceil_div(M, 16 * MR)"]

-   int col = get_global_id(0) * 4;
-   col = min(col, N - 4);
+   int col = get_global_id(0) * 16;
+   col = min(col, N - 16);

-   float4 sum[MR];
+   float16 sum[MR];                                         // one AVX-512 register each: count them against 32
    for (int k = 0; k < K; ++k) {
-       float4 bk = vload4(0, b + k * N);
+       float16 bk = vload16(0, b + k * N);                  // one load, a whole cache line when b's rows are aligned
        #pragma unroll
        for (int i = 0; i < MR; ++i)
            sum[i] += a[i * K + k] * bk;                     // the broadcast folds into the multiply-add
    }
    #pragma unroll
    for (int i = 0; i < MR; ++i)
-       vstore4(sum[i], 0, c + i * N);
+       vstore16(sum[i], 0, c + i * N);
