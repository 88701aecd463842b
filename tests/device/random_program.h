// A random program of uploads, fills, copies, kernels, snapshots, releases and allocations, and
// what each snapshot of it must hold.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/philox.h"
#include "device/device_helpers.h"

namespace millrace::testing {

/// The program, and what the host says it does.
class RandomProgram {
 public:
  RandomProgram(Device& device, uint64_t seed) : device_(device), seed_(seed) {
    for (uint32_t i = 0; i < kBuffers; ++i) renew(i);
  }
  ~RandomProgram() {
    for (const BufferId id : ids_) device_.release(id);
  }
  RandomProgram(const RandomProgram&) = delete;
  RandomProgram& operator=(const RandomProgram&) = delete;

  void run() {
    for (uint32_t i = 0; i < kCommands; ++i) {
      words_ = philox(seed_, i, RandomPurpose::TestCapacity, 0);
      const auto more = philox(seed_, i, RandomPurpose::TestCapacity, 1);
      const uint32_t to = words_[1] % kBuffers;
      const uint32_t first = more[0] % kWords, n = 1 + more[1] % (kWords - first);
      step(words_[0] % 8, to, first, n, (to + 1 + more[2] % (kBuffers - 1)) % kBuffers);
    }
  }
  /// Compares every snapshot and the final contents; all work must have run.
  void check() {
    for (size_t i = 0; i < tickets_.size(); ++i) {
      ASSERT_TRUE(tickets_[i].ready()) << "snapshot " << i;
      ASSERT_EQ(values_of(tickets_[i]), wanted_[i]) << "snapshot " << i << " of seed " << seed_;
    }
  }
  void snapshot_all() {
    for (uint32_t i = 0; i < kBuffers; ++i) snapshot(i, 0, kWords);
  }

 private:
  using Values = std::vector<uint32_t>;
  static constexpr uint32_t kBuffers = 5, kWords = 96, kCommands = 400;

  Slice slice(uint32_t buffer, uint32_t first, uint32_t n) const {
    return {ids_[buffer], 4 * first, 4 * n};
  }
  void snapshot(uint32_t buffer, uint32_t first, uint32_t n) {
    tickets_.push_back(device_.download(slice(buffer, first, n)).or_raise());
    const auto begin = host_[buffer].begin() + first;
    wanted_.emplace_back(begin, begin + n);
  }
  void renew(uint32_t buffer) {
    if (ids_[buffer]) device_.release(ids_[buffer]);
    ids_[buffer] = device_.allocate(4 * kWords, "program").or_raise();
    host_[buffer].assign(kWords, words_[2]);
    if (words_[3] % 2 == 0) {
      device_.fill(whole(ids_[buffer], 4 * kWords), words_[2]).or_raise();
    } else {
      device_.upload(whole(ids_[buffer], 4 * kWords), bytes_of(host_[buffer])).or_raise();
    }
  }
  void step(uint32_t what, uint32_t to, uint32_t first, uint32_t n, uint32_t from) {
    const auto begin = host_[to].begin() + first;
    switch (what) {
      case 0: {
        Values values(n);
        for (uint32_t i = 0; i < n; ++i) values[i] = words_[2] + i;
        device_.upload(slice(to, first, n), bytes_of(values)).or_raise();
        std::copy(values.begin(), values.end(), begin);
        std::fill(values.begin(), values.end(), 0u);  // the source is the caller's again
        break;
      }
      case 1:
        device_.fill(slice(to, first, n), words_[2]).or_raise();
        std::fill_n(begin, n, words_[2]);
        break;
      case 2:
        device_.copy(slice(to, first, n), slice(from, kWords - n, n)).or_raise();
        std::copy_n(host_[from].end() - n, n, begin);
        break;
      case 3:
        snapshot(to, first, n);
        break;
      case 4:
        renew(to);
        break;
      case 5:
        device_.submit();
        break;
      default:
        add(device_, slice(to, first, n), words_[2]).or_raise();
        for (uint32_t i = 0; i < n; ++i) begin[i] += words_[2];
    }
  }

  Device& device_;
  uint64_t seed_;
  std::array<uint32_t, 4> words_ = {1, 2, 3, 4};
  BufferId ids_[kBuffers];
  Values host_[kBuffers];
  std::vector<Ticket> tickets_;
  std::vector<Values> wanted_;
};

}  // namespace millrace::testing
