// The wait ledger's rows and counts.
#include "device/wait_ledger.h"

#include <fmt/format.h>

#include <string_view>

namespace millrace {
namespace {

// Paths in records start at the source tree, not at the machine's root.
std::string short_path(const char* path) {
  const std::string_view all(path);
  for (const std::string_view root : {"/src/", "/tests/", "/tools/"}) {
    const size_t at = all.rfind(root);
    if (at != std::string_view::npos) return std::string(all.substr(at + 1));
  }
  return std::string(all);
}

bool same_site(const WaitRecord& row, const WaitSite& site, const std::string& where) {
  return row.reason == site.reason && row.site == site.name && row.where == where;
}

std::string place(const WaitSite& site) {
  return fmt::format("{}:{}", short_path(site.where.file_name()), site.where.line());
}

}  // namespace

const char* to_string(WaitReason reason) {
  switch (reason) {
    case WaitReason::UserRead:
      return "UserRead";
    case WaitReason::Pacing:
      return "Pacing";
    case WaitReason::StagingFull:
      return "StagingFull";
    case WaitReason::Decode:
      return "Decode";
    case WaitReason::Replay:
      return "Replay";
    case WaitReason::Resize:
      return "Resize";
    case WaitReason::Shutdown:
      return "Shutdown";
    case WaitReason::Test:
      return "Test";
  }
  return "Unknown";
}

void WaitLedger::record(const WaitSite& site, std::chrono::steady_clock::time_point begin) {
  const auto blocked = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::steady_clock::now() - begin);
  const std::string where = place(site);
  std::lock_guard lock(mutex_);
  for (WaitRecord& row : records_) {
    if (!same_site(row, site, where)) continue;
    ++row.count;
    row.blocked_ns += static_cast<uint64_t>(blocked.count());
    return;
  }
  records_.push_back({.site = site.name,
                      .where = where,
                      .reason = site.reason,
                      .count = 1,
                      .blocked_ns = static_cast<uint64_t>(blocked.count())});
}

void WaitLedger::add_device_dry(const WaitSite& site, uint64_t ns) {
  const std::string where = place(site);
  std::lock_guard lock(mutex_);
  for (WaitRecord& row : records_) {
    if (same_site(row, site, where)) row.device_dry_ns += ns;
  }
}

std::vector<WaitRecord> WaitLedger::records() const {
  std::lock_guard lock(mutex_);
  return records_;
}

uint64_t WaitLedger::count(WaitReason reason) const {
  std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const WaitRecord& row : records_) sum += row.reason == reason ? row.count : 0;
  return sum;
}

uint64_t WaitLedger::count_except_pacing() const {
  std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const WaitRecord& row : records_) sum += row.reason == WaitReason::Pacing ? 0 : row.count;
  return sum;
}

}  // namespace millrace
