// What the CUDA source made by Slang needs to compile as HIP: names only, and wave operations whose
// mask is left out. Waves are taken to have 32 lanes: this shows that the code compiles, not more.
#pragma once
#include <hip/hip_runtime.h>

typedef hipSurfaceObject_t cudaSurfaceObject_t;
typedef hipSurfaceBoundaryMode cudaSurfaceBoundaryMode;
typedef hipTextureObject_t cudaTextureObject_t;
#define cudaBoundaryModeZero hipBoundaryModeZero

// A fourth argument, a width, may follow.
#define __shfl_sync(mask, ...) __shfl(__VA_ARGS__)
#define __shfl_up_sync(mask, ...) __shfl_up(__VA_ARGS__)
#define __shfl_xor_sync(mask, ...) __shfl_xor(__VA_ARGS__)
#define __any_sync(mask, value) __any(value)
#define __all_sync(mask, value) __all(value)
#define __ballot_sync(mask, value) static_cast<unsigned>(__ballot(value))
#define __activemask() 0xFFFFFFFFu
#define __match_any_sync(mask, value) millrace_match_any(value)

#define __ffsll(value) __ffsll(static_cast<unsigned long long>(value))

__device__ inline unsigned millrace_match_any(unsigned value) {
  unsigned same = 0;
  for (int lane = 0; lane < 32; ++lane) same |= unsigned(__shfl(value, lane) == value) << lane;
  return same;
}
