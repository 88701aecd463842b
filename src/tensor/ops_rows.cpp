// Concatenation, gathering and scattering of rows, random numbers, and iterate_affine.
#include <fmt/format.h>

#include "tensor/check.h"
#include "tensor/launch.h"
#include "tensor/ops.h"

namespace millrace {
namespace {

IndexedRowsParams rows_params(const char* op, const Tensor& table, const Tensor& index,
                              std::initializer_list<const Tensor*> operands, const Site& site) {
  require_operands(op, operands, site);
  require_dtype(op, index, Dtype::U32, operands, site);
  if (table.rank() == 0 || index.rank() != 1) {
    fail(op, "needs a table [R,...] and indices [M]", operands, site);
  }
  uint64_t row_bytes = dtype_bytes(table.dtype());
  for (int dim = 1; dim < table.rank(); ++dim) row_bytes *= static_cast<uint64_t>(table.size(dim));
  return {index.numel(), static_cast<uint64_t>(table.size(0)), row_bytes,
          static_cast<uint32_t>(dtype_bytes(table.dtype())), 0};
}

Tensor random(const char* name, Device& device, const Shape& shape, const RandomParams& wanted,
              const Site& site) {
  Tensor out = Tensor::empty(device, shape, Dtype::F32, name, site);
  RandomParams params = wanted;
  params.n = out.numel();
  launch(device, KernelId::random_fill, params.n, {write(out, site)}, params, site);
  return out;
}

}  // namespace

Tensor cat(std::span<const Tensor> parts, int dim, Site site) {
  if (parts.empty()) fail("cat", "no parts", {}, site);
  const Tensor& first = parts.front();
  require_operands("cat", {&first}, site);
  dim = require_dim("cat", dim, first.rank(), {&first}, site);
  Shape shape = first.shape();
  shape[dim] = 0;
  for (const Tensor& part : parts) {
    require_operands("cat", {&first, &part}, site);
    require_dtype("cat", part, first.dtype(), {&first, &part}, site);
    bool fits = part.rank() == first.rank();
    for (int i = 0; fits && i < first.rank(); ++i) fits = i == dim || part.size(i) == first.size(i);
    if (!fits) fail("cat", fmt::format("extents other than {} differ", dim), {&first, &part}, site);
    shape[dim] += part.size(dim);
  }
  Tensor out = Tensor::empty(first.device(), shape, first.dtype(), "cat", site);
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    out.slice(dim, begin, begin + part.size(dim), site).copy_(part, site);
    begin += part.size(dim);
  }
  return out;
}

Tensor cat(std::initializer_list<Tensor> parts, int dim, Site site) {
  return cat(std::span<const Tensor>(parts.begin(), parts.size()), dim, site);
}

Tensor gather(const Tensor& table, const Tensor& index, Site site) {
  const IndexedRowsParams params = rows_params("gather", table, index, {&table, &index}, site);
  Shape shape = table.shape();
  shape[0] = index.size(0);
  Tensor out = Tensor::empty(table.device(), shape, table.dtype(), "gather", site);
  if (out.numel() == 0) return out;
  if (table.numel() == 0) {
    out.fill_(0, site);  // every index is out of range
    return out;
  }
  const Tensor rows = table.contiguous(site), indices = index.contiguous(site);
  launch(table.device(), KernelId::tensor_gather, params.n_indices,
         {write(out, site), read(rows, site), read(indices, site)}, params, site);
  return out;
}

void scatter_(const Tensor& table, const Tensor& index, const Tensor& rows, Site site) {
  const IndexedRowsParams params =
      rows_params("scatter_", table, index, {&table, &index, &rows}, site);
  require_dtype("scatter_", rows, table.dtype(), {&table, &index, &rows}, site);
  Shape shape = table.shape();
  shape[0] = index.size(0);
  if (rows.shape() != shape) {
    fail("scatter_", "the rows must be " + shape.str(), {&table, &index, &rows}, site);
  }
  if (!table.is_contiguous()) {
    fail("scatter_", "the table must be contiguous", {&table, &index, &rows}, site);
  }
  if (table.overlaps(rows) || table.overlaps(index)) {
    fail("scatter_", "the table overlaps another operand", {&table, &index, &rows}, site);
  }
  if (rows.numel() == 0 || table.numel() == 0) return;
  const Tensor packed = rows.contiguous(site), indices = index.contiguous(site);
  launch(table.device(), KernelId::tensor_scatter, params.n_indices,
         {update(table, site), read(packed, site), read(indices, site)}, params, site);
}

Tensor random_uniform(Device& device, const Shape& shape, uint64_t seed, uint32_t step,
                      RandomPurpose purpose, float low, float high, Site site) {
  return random("random_uniform", device, shape,
                {0, seed, step, static_cast<uint32_t>(purpose),
                 static_cast<uint32_t>(RandomKind::Uniform), low, high - low, 0},
                site);
}

Tensor random_normal(Device& device, const Shape& shape, uint64_t seed, uint32_t step,
                     RandomPurpose purpose, float mean, float deviation, Site site) {
  return random("random_normal", device, shape,
                {0, seed, step, static_cast<uint32_t>(purpose),
                 static_cast<uint32_t>(RandomKind::Normal), mean, deviation, 0},
                site);
}

Tensor iterate_affine(Device& device, int64_t n, uint32_t rounds, float a, float b, Site site) {
  Tensor out = Tensor::empty(device, Shape{n}, Dtype::F32, "iterate_affine", site);
  launch(device, KernelId::iterate_affine, out.numel(), {write(out, site)},
         IterateAffineParams{out.numel(), rounds, a, b, 0}, site);
  return out;
}

}  // namespace millrace
