// tensor_gather, tensor_scatter: whole rows picked from, or put into, a table by index.
//   gather: out[i,:] = table[index[i],:]       scatter: table[index[i],:] = rows[i,:]
// Shapes    table: [n_rows, row]. index: [n_indices] U32. out, rows: [n_indices, row].
// Units     row_bytes: bytes of one row.
// Threads   one per index.
// Writes    gather: every row of out, zeros where the index is out of range. scatter: the rows
//           named; an index out of range writes nothing; indices must be distinct.
// Numerics  bytes are moved, never interpreted.
// Source    none: definitions.
// Test      tests/tensor/ops_rows_test.cpp: exact.
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/tensor_params.h"

namespace millrace::kernels {
namespace {

uint64_t rows_per_task(uint64_t row_bytes) { return std::max<uint64_t>(1, 65536 / row_bytes); }

}  // namespace

void tensor_gather(const KernelCall& call) {
  const auto& p = call.params_as<IndexedRowsParams>();
  std::byte* out = call.buffer<std::byte>(0);
  const std::byte* table = call.buffer<const std::byte>(1);
  const auto* index = call.buffer<const uint32_t>(2);
  parallel_for(p.n_indices, rows_per_task(p.row_bytes), [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      if (index[i] < p.n_rows) {
        std::memcpy(out + i * p.row_bytes, table + index[i] * p.row_bytes, p.row_bytes);
      } else {
        std::memset(out + i * p.row_bytes, 0, p.row_bytes);
      }
    }
  });
}

void tensor_scatter(const KernelCall& call) {
  const auto& p = call.params_as<IndexedRowsParams>();
  std::byte* table = call.buffer<std::byte>(0);
  const std::byte* rows = call.buffer<const std::byte>(1);
  const auto* index = call.buffer<const uint32_t>(2);
  parallel_for(p.n_indices, rows_per_task(p.row_bytes), [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      if (index[i] >= p.n_rows) continue;
      std::memcpy(table + index[i] * p.row_bytes, rows + i * p.row_bytes, p.row_bytes);
    }
  });
}

}  // namespace millrace::kernels
