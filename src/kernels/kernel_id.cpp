// The kernel table as data.
#include "kernels/kernel_id.h"

#include "kernels/appearance_params.h"
#include "kernels/splat_params.h"
#include "kernels/tensor_params.h"

namespace millrace {
namespace {

constexpr KernelRow kRows[] = {
#define MILLRACE_KERNEL(name, params, access) {#name, sizeof(params), access},
#include "kernels/table.inc"
#undef MILLRACE_KERNEL
};

}  // namespace

const KernelRow& kernel_row(KernelId id) { return kRows[static_cast<size_t>(id)]; }

}  // namespace millrace
