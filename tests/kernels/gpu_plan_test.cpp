// The GPU plan: rows of one kernel stand together and are numbered from 0.
#include "kernels/gpu_plan.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(GpuPlan, NumbersTheRowsOfEachKernelFrom0AndHasThemTogether) {
  size_t n_rows = 0;
  for (size_t i = 0; i < static_cast<size_t>(KernelId::kCount); ++i) {
    const auto passes = gpu_passes(static_cast<KernelId>(i));
    for (size_t k = 0; k < passes.size(); ++k) {
      EXPECT_EQ(passes[k].pass, k) << passes[k].entry_point;
      EXPECT_EQ(passes[k].kernel, static_cast<KernelId>(i));
      EXPECT_GT(passes[k].items_per_group, 0u) << passes[k].entry_point;
    }
    n_rows += passes.size();
  }
  EXPECT_EQ(n_rows, detail::kGpuPasses.size()) << "the rows of a kernel do not stand together";
}

TEST(GpuPlan, HasTheDevicesTestOfItself) {
  ASSERT_EQ(gpu_passes(KernelId::add_u32).size(), 1u);
  EXPECT_EQ(gpu_passes(KernelId::add_u32)[0].shape, GpuShape::PerThread);
}

}  // namespace
}  // namespace millrace
