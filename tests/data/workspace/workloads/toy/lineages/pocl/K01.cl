/*klineage
surface = "opencl"

[[launch]]
kernel = "toy"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// staged rows
__kernel void toy(__global const float *x, __global float *y, int R, int C)
{
}
