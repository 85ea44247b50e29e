__local float row[MAX_C];
row[lid] = x[r * C + lid];
barrier(CLK_LOCAL_MEM_FENCE); // ``` fences survive
