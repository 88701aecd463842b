// LaunchLog: the kernels queued last with their sites, to name suspects when a driver reports a
// fault without saying whose.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/source_location.h"
#include "device/device.h"

namespace millrace {

/// A ring of the newest launches. Allocates nothing while noting. Not thread-safe.
class LaunchLog {
 public:
  void note(Point point, KernelId kernel, const SourceLocation& site) {
    entries_[n_++ % kKept] = {point, kernel, site};
  }
  /// "add_u32 queued at src/a.cpp:7, ..." for the launches with after < point <= last, oldest
  /// first, at most `most` of them and how many more; "no kernel" if there is none.
  std::string between(Point after, Point last, size_t most) const;

 private:
  static constexpr size_t kKept = 512;
  struct Entry {
    Point point = 0;
    KernelId kernel = {};
    SourceLocation site;
  };

  std::array<Entry, kKept> entries_;
  size_t n_ = 0;
};

}  // namespace millrace
