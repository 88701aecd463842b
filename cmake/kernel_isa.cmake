# Kernels that exist once per instruction set (src/kernels/isa/*.cpp), chosen at run time.
