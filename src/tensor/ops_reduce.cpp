// Reductions: one launch of reduce_chunks per level of the tree.
#include "tensor/check.h"
#include "tensor/launch.h"
#include "tensor/ops.h"

namespace millrace {
namespace {

/// [outer, length, inner] -> [outer, inner]; `x` contiguous.
Tensor reduce_middle(const char* name, ReduceOp op, bool mean, const Tensor& x, uint64_t outer,
                     uint64_t length, uint64_t inner, const Site& site) {
  if (length == 0) {
    if (op != ReduceOp::Sum || mean) fail(name, "nothing to reduce", {&x}, site);
    return Tensor::zeros(x.device(), Shape(outer, inner), x.dtype(), name, site);
  }
  const float scale = mean ? static_cast<float>(1.0 / static_cast<double>(length)) : 1.0f;
  Tensor level = x;
  do {
    const uint64_t n_chunks = (length + kReduceChunk - 1) / kReduceChunk;
    Tensor next = Tensor::empty(x.device(), Shape(outer, n_chunks, inner), x.dtype(), name, site);
    const ReduceParams params{outer,
                              length,
                              inner,
                              static_cast<uint32_t>(op),
                              static_cast<uint32_t>(x.dtype()),
                              n_chunks == 1 ? scale : 1.0f,
                              0};
    launch(x.device(), KernelId::reduce_chunks, next.numel(),
           {write(next, site), read(level, site)}, params, site);
    level = next;
    length = n_chunks;
  } while (length > 1);
  return level;
}

void check_reduce(const char* name, bool mean, const Tensor& x, const Site& site) {
  require_operands(name, {&x}, site);
  const bool integer = x.dtype() == Dtype::I32 || x.dtype() == Dtype::U32;
  if (x.dtype() != Dtype::F32 && (mean || !integer)) {
    fail(name, std::string("does not take ") + to_string(x.dtype()), {&x}, site);
  }
}

Tensor reduce_all(const char* name, ReduceOp op, bool mean, const Tensor& x, const Site& site) {
  check_reduce(name, mean, x, site);
  return reduce_middle(name, op, mean, x.contiguous(site), 1, x.numel(), 1, site)
      .reshape(Shape(1), site);
}

Tensor reduce_dim(const char* name, ReduceOp op, bool mean, const Tensor& x, int dim,
                  const Site& site) {
  check_reduce(name, mean, x, site);
  dim = require_dim(name, dim, x.rank(), {&x}, site);
  uint64_t outer = 1, inner = 1;
  std::array<int64_t, kMaxRank> kept{};
  for (int i = 0, to = 0; i < x.rank(); ++i) {
    if (i == dim) continue;
    kept[to++] = x.size(i);
    (i < dim ? outer : inner) *= static_cast<uint64_t>(x.size(i));
  }
  return reduce_middle(name, op, mean, x.contiguous(site), outer,
                       static_cast<uint64_t>(x.size(dim)), inner, site)
      .reshape(Shape(kept, x.rank() - 1), site);
}

}  // namespace

Tensor reduce_sum(const Tensor& x, Site site) {
  return reduce_all("reduce_sum", ReduceOp::Sum, false, x, site);
}
Tensor reduce_min(const Tensor& x, Site site) {
  return reduce_all("reduce_min", ReduceOp::Min, false, x, site);
}
Tensor reduce_max(const Tensor& x, Site site) {
  return reduce_all("reduce_max", ReduceOp::Max, false, x, site);
}
Tensor reduce_mean(const Tensor& x, Site site) {
  return reduce_all("reduce_mean", ReduceOp::Sum, true, x, site);
}
Tensor reduce_sum(const Tensor& x, int dim, Site site) {
  return reduce_dim("reduce_sum", ReduceOp::Sum, false, x, dim, site);
}
Tensor reduce_min(const Tensor& x, int dim, Site site) {
  return reduce_dim("reduce_min", ReduceOp::Min, false, x, dim, site);
}
Tensor reduce_max(const Tensor& x, int dim, Site site) {
  return reduce_dim("reduce_max", ReduceOp::Max, false, x, dim, site);
}
Tensor reduce_mean(const Tensor& x, int dim, Site site) {
  return reduce_dim("reduce_mean", ReduceOp::Sum, true, x, dim, site);
}

}  // namespace millrace
