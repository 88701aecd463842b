// The argument blocks and records of the GPU kernels have the layout that C++ gives them.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/argument_block.h"
#include "kernels/appearance_params.h"
#include "kernels/kernel_id.h"
#include "kernels/splat_params.h"
#include "kernels/tensor_params.h"

namespace millrace {
namespace {

using Head = ArgumentBlock::Head;

struct Extent {
  const char* name;
  size_t given_offset, given_bytes, wanted_offset, wanted_bytes;
};
// As the compiled kernels have it, then as C++ has it.
const std::vector<Extent> kExtents = {
#define MILLRACE_GPU_ARGS(entry, params, offset, bytes)
#define MILLRACE_GPU_RECORD(type, bytes) {#type, 0, bytes, 0, sizeof(type)},
#define MILLRACE_GPU_FIELD(type, field, offset, bytes) \
  {#type "." #field, offset, bytes, offsetof(type, field), sizeof(type::field)},
#include "gpu_layouts.inc"
#undef MILLRACE_GPU_ARGS
#undef MILLRACE_GPU_RECORD
#undef MILLRACE_GPU_FIELD
};

struct Block {
  std::string_view entry, params;
  size_t params_offset, bytes;
};
const std::vector<Block> kBlocks = {
#define MILLRACE_GPU_ARGS(entry, params, offset, bytes) {#entry, #params, offset, bytes},
#define MILLRACE_GPU_RECORD(type, bytes)
#define MILLRACE_GPU_FIELD(type, field, offset, bytes)
#include "gpu_layouts.inc"
#undef MILLRACE_GPU_ARGS
#undef MILLRACE_GPU_RECORD
#undef MILLRACE_GPU_FIELD
};

constexpr std::string_view kParamsNames[] = {
#define MILLRACE_KERNEL(name, params, access) #params,
#include "kernels/table.inc"
#undef MILLRACE_KERNEL
};

struct PlanRow {
  KernelId kernel;
  std::string_view entry;
};
constexpr PlanRow kPlan[] = {
#define MILLRACE_GPU_PASS(kernel, entry, shape, items) {KernelId::kernel, #entry},
#include "kernels/gpu_table.inc"
#undef MILLRACE_GPU_PASS
};

TEST(GpuLayout, OfEachRecordAndParameterBlockIsThatOfCpp) {
  if (kExtents.empty()) GTEST_SKIP() << "built without the Slang compiler";
  for (const Extent& extent : kExtents) {
    EXPECT_EQ(extent.given_offset, extent.wanted_offset) << extent.name;
    EXPECT_EQ(extent.given_bytes, extent.wanted_bytes) << extent.name;
  }
}

TEST(GpuLayout, OfEachArgumentBlockIsHeadThenAnAddressPerBindingThenTheKernelsParameters) {
  if (kBlocks.empty()) GTEST_SKIP() << "built without the Slang compiler";
  for (const PlanRow& pass : kPlan) {
    const KernelRow& row = kernel_row(pass.kernel);
    const std::string_view access = row.access;
    const bool repeats = access.ends_with('*');
    const size_t n_bindings = access.size() - (repeats ? 1 : 0);
    const Block* block = nullptr;
    for (const Block& candidate : kBlocks) {
      if (candidate.entry == pass.entry) block = &candidate;
    }
    ASSERT_NE(block, nullptr) << pass.entry << " is not among the compiled entry points";
    EXPECT_EQ(block->params, kParamsNames[static_cast<size_t>(pass.kernel)]) << pass.entry;
    EXPECT_EQ(block->bytes, block->params_offset + row.params_bytes) << pass.entry;
    const size_t fewest = sizeof(Head) + 8 * n_bindings;
    if (repeats) {
      EXPECT_GE(block->params_offset, fewest) << pass.entry;
    } else {
      EXPECT_EQ(block->params_offset, fewest) << pass.entry;
    }
  }
}

}  // namespace
}  // namespace millrace
