// The pixels of one area of a bilateral grid, for hot_table.cpp.
#pragma once

#include "kernels/isa/hot.h"

namespace millrace::kernels::MILLRACE_ISA {

void grid_forward_area(const GridArgs& args, uint32_t area);
void grid_backward_area(const GridArgs& args, uint32_t area);

}  // namespace millrace::kernels::MILLRACE_ISA
