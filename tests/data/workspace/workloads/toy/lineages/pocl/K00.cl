/*klineage
surface = "opencl"

[[launch]]
kernel = "toy"
grid = ["ceil_div(R, 1)"]
block = ["1"]
args = ["x", "y", "int R", "int C"]
*/
// naive
__kernel void toy(__global const float *x, __global float *y, int R, int C)
{
}
