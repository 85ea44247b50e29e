/*klineage
surface = "opencl"

[[launch]]
kernel = "toy"
grid = ["R"]
block = [1]
args = ["x", "y", "int C"]
*/
kernel of the simulated world;
edit e02(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx);
edit e04(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx);
edit e08(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx);
