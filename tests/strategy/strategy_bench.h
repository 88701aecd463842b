// A model on a device with one transaction at a time: what the strategy tests drive.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/philox.h"
#include "simulated/substitute.h"
#include "splat/render.h"

namespace millrace::test {

/// All rows of a model, [N, lanes] each, in the order of ModelSnapshot::tensors.
struct Rows {
  Control control;
  std::vector<float> groups[6];

  uint64_t count() const { return control.counts.rows; }
  float geometry(uint64_t row, uint32_t lane) const {
    return groups[0][row * kGeometryLanes + lane];
  }
  double opacity(uint64_t row) const {
    return 1 / (1 + std::exp(-double{geometry(row, kLaneOpacity)}));
  }
  /// Row `row` of tensor `group`.
  std::vector<float> row_of(int group, uint64_t row) const {
    const size_t lanes = groups[group].size() / count();
    const auto begin = groups[group].begin() + static_cast<ptrdiff_t>(row * lanes);
    return {begin, begin + static_cast<ptrdiff_t>(lanes)};
  }
};

inline float logit(double o) { return static_cast<float>(std::log(o / (1 - o))); }

/// `n` rows of SH degree 1, every number a function of (seed, row, lane); opacities as given by
/// `opacity_of(row)`.
template <class OpacityOf>
GaussianCloud make_cloud(uint32_t n, uint64_t seed, const OpacityOf& opacity_of) {
  const auto u = [&](uint32_t row, uint32_t lane) {
    return 2 * uniform_open(philox(seed, 0, RandomPurpose::Synthetic, row, lane)[0]) - 1;
  };
  GaussianCloud cloud;
  cloud.sh_degree = 1;
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t k = 0; k < 3; ++k) {
      cloud.means.push_back(u(i, k));
      cloud.log_scales.push_back(-3 + u(i, 3 + k));
      cloud.sh0.push_back(u(i, 10 + k));
    }
    cloud.rotations.push_back(1.5f);
    for (uint32_t k = 0; k < 3; ++k) cloud.rotations.push_back(u(i, 6 + k));
    for (uint32_t k = 0; k < 9; ++k) cloud.sh_rest.push_back(u(i, 20 + k));
    cloud.opacities.push_back(logit(opacity_of(i)));
  }
  return cloud;
}

struct Bench {
  std::unique_ptr<Device> device;
  Model model;

  Bench(const GaussianCloud& cloud, uint64_t row_capacity, const std::string& id = "cpu:2")
      : device(make_checked(open_device(simulated::test_device(id)).or_raise())),
        model(make_model(*device, cloud, cloud.sh_degree, row_capacity)) {
    // Moments that are not zero, so that zeroing and carrying them is seen.
    float value = 1;
    for (const ParameterGroup* group : {&model.geometry, &model.sh_rest}) {
      for (const Tensor* moments : {&group->first_moment, &group->second_moment}) {
        std::vector<float> numbers(moments->numel());
        for (size_t i = 0; i < numbers.size(); ++i)
          numbers[i] = value + static_cast<float>(i % 1009);
        moments->upload(numbers);
        value *= 2;
      }
    }
  }

  Rows rows_blocking() const {
    const ModelSnapshot snapshot = read_model_later(model, model.row_capacity, true);
    device->wait_blocking(device->submit(), {WaitReason::Test, "test.rows"}).or_raise();
    Rows rows;
    rows.control = control_of(snapshot);
    for (int i = 0; i < 6; ++i) rows.groups[i] = rows_of(snapshot, i);
    return rows;
  }
};

/// A step block of an MCMC transaction.
inline StepBlock mcmc_block(uint64_t transaction, uint32_t max_rows, uint64_t seed = 42) {
  StepBlock block = {};
  block.transaction = transaction;
  block.step = static_cast<uint32_t>(transaction / 4);
  block.seed = seed;
  block.min_opacity = 0.005f;
  block.max_rows = max_rows;
  return block;
}

inline bool same_rows(const Rows& a, const Rows& b) {
  bool same = a.count() == b.count();
  for (int i = 0; i < 6; ++i) same &= a.groups[i] == b.groups[i];
  return same;
}

}  // namespace millrace::test
