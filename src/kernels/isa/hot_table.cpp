// The table of this instruction set's inner functions.
#include "kernels/isa/blend.h"
#include "kernels/isa/grid_slice.h"
#include "kernels/isa/iterate_affine.h"
#include "kernels/isa/photometric.h"
#include "kernels/isa/ppisp.h"
#include "kernels/isa/projection.h"
#include "kernels/isa/tile_cover.h"

#define MILLRACE_STRING_INNER(x) #x
#define MILLRACE_STRING(x) MILLRACE_STRING_INNER(x)

namespace millrace::kernels::MILLRACE_ISA {

const HotKernels& table();

const HotKernels& table() {
  static constexpr HotKernels kTable = {
      "x86-64-" MILLRACE_STRING(MILLRACE_ISA),
      kWidth,
      project_block,
      cover_tiles,
      blend_forward_tile,
      blend_backward_tile,
      backward_adam_block,
      backward_accumulate_block,
      adam_block,
      photometric_forward_band,
      photometric_backward_band,
      ppisp_forward_band,
      ppisp_backward_band,
      grid_forward_area,
      grid_backward_area,
      iterate_affine,
  };
  return kTable;
}

}  // namespace millrace::kernels::MILLRACE_ISA
