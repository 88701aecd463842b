// A model that keeps statistics, with statistics as a test says: what the MRNF tests drive.
#pragma once

#include <array>
#include <numeric>
#include <vector>

#include "strategy/mrnf.h"
#include "strategy/strategy_bench.h"

namespace millrace::test {

using Statistics = std::array<float, kStatisticLanes>;  // weight, error, edge, share

struct MrnfBench : Bench {
  Tensor row_ids;

  template <class StatisticsOf>
  MrnfBench(const GaussianCloud& cloud, uint64_t row_capacity, const StatisticsOf& statistics_of,
            const std::string& id = "cpu:2")
      : Bench(cloud, row_capacity, id) {
    keep_statistics(model, cloud.count());
    set_statistics(cloud.count(), statistics_of);
    make_row_ids();
  }

  void make_row_ids() {
    std::vector<uint32_t> ids(model.row_capacity);
    std::iota(ids.begin(), ids.end(), 0u);
    row_ids = Tensor::from_host(*device, ids, Shape{ids.size()}, "test");
  }

  template <class StatisticsOf>
  void set_statistics(uint64_t n, const StatisticsOf& statistics_of) {
    std::vector<float> rows;
    for (uint32_t i = 0; i < n; ++i) {
      const Statistics s = statistics_of(i);
      rows.insert(rows.end(), s.begin(), s.end());
    }
    const std::vector<float> blocks = to_row_blocks(rows, n, kStatisticLanes);
    const auto n_blocks = static_cast<int64_t>(blocks.size() / (kStatisticLanes * kRowBlock));
    model.statistics.slice(0, 0, n_blocks).upload(blocks);
  }

  std::vector<float> statistics_blocking(uint64_t n) {
    const Ticket ticket = read_later(model.statistics);
    device->wait_blocking(device->submit(), {WaitReason::Test, "test.statistics"}).or_raise();
    return from_row_blocks(reinterpret_cast<const float*>(ticket.bytes().data()), 0, n,
                           kStatisticLanes);
  }

  void refine(const StepBlock& block) {
    const Tensor step = upload_step_block(*device, block);
    decide(model, step, /*check_rows=*/true);
    mrnf_refine(model, step, row_ids, (block.mrnf.modes & kMrnfBounds) != 0);
    commit(model, step, CommitMode::Refine);
  }
};

/// A step block of an MRNF transaction that neither grows nor decays.
inline StepBlock mrnf_block(uint64_t transaction, uint32_t max_rows, uint64_t seed = 42) {
  StepBlock block = mcmc_block(transaction, max_rows, seed);
  block.min_opacity = 1.0f / 255;
  block.mrnf.modes = kMrnfOn;
  block.mrnf.growth_threshold = 1;
  return block;
}

}  // namespace millrace::test
